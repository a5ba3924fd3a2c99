"""`affidavit-verify.pyz`: checks where nothing but Python and `cryptography` is installed."""

from __future__ import annotations

import sys

from affidavit.apps.auditor.checking import check_file
from affidavit.apps.auditor.options import add_trust, trust_of
from affidavit.apps.auditor.published import check_published, is_published
from affidavit.apps.cli.answering import answer_with, show_every_character
from affidavit.apps.cli.parsing import Parser
from affidavit.apps.cli.render import Answer


def main(words: list[str]) -> int:
    """Verify what somebody gave or published; the exit code is the verdict."""
    show_every_character()
    return answer_with(_check, words)


def _check(words: list[str]) -> Answer:
    parser = Parser(
        prog="affidavit-verify",
        description="Check an evidence file, a published log, or a proof that a log signed two "
        "histories.",
        epilog="exit codes: 0 verified, 1 a violation, 2 wrong words, 3 not verified, 4 no access",
    )
    parser.add_argument("subject", metavar="SUBJECT", help="a file, a folder or an address")
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")
    add_trust(parser)
    args = parser.parse_args(words)
    check = check_published if is_published(args.subject) else check_file
    return check(args.subject, trust_of(args))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
