"""How an auditor says whom to believe, the same for every command that verifies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from affidavit.verify.trust import Trust


def add_trust(parser: argparse.ArgumentParser) -> None:
    """`--key`, `--policy` and `--pinned`."""
    group = parser.add_argument_group("whom to believe")
    group.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="VKEY",
        help="the log's verifier key, from somebody you believe; may be repeated",
    )
    group.add_argument(
        "--policy",
        metavar="FILE",
        help="keys and witnesses, and how many of them it takes (c2sp.org/tlog-policy)",
    )
    group.add_argument(
        "--pinned",
        action="append",
        default=[],
        metavar="NOTE",
        help="a checkpoint you kept: the log must have grown out of it; may be repeated",
    )


def trust_of(args: argparse.Namespace) -> Trust:
    """What these options say, and what lies in this user's folders."""
    from affidavit.apps.auditor.trusting import read_trust  # noqa: PLC0415 - parsers must be light

    return read_trust(args.key, args.policy, args.pinned)
