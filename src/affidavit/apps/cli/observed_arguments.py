"""What the commands about turns, tool calls and proposals are called, take and say."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from affidavit.apps.cli.parsing import Commands, add_as_of, add_command, add_noun, read_age_us
from affidavit.core.lifecycle import DECISIONS, FINISHED

# The same words as in the input schemas, which are too heavy to load here; a test compares them.
TURN_KINDS: Final = ("user", "assistant", "system", "sysinfo", "tool")
CALL_STATUSES: Final = ("requested", *FINISHED)
PROPOSAL_STATUSES: Final = ("pending", *DECISIONS, "applied", "reverted")
USAGE_BY: Final = ("model", "session", "day")
_HOUR_US: Final = 3_600_000_000


def add_observed(commands: Commands) -> None:
    """`affidavit turn ...`, `call ...`, `proposal ...`, `orphans`, `usage` and `settled`."""
    _add_turns(add_noun(commands, "turn", "record, show and list turns of conversations"))
    _add_calls(add_noun(commands, "call", "record, show and list tool calls"))
    _add_proposals(add_noun(commands, "proposal", "record, decide and list code-edit proposals"))
    parser = add_command(
        commands,
        "orphans",
        "observed:orphans",
        "show tool calls nobody finished, the newest first",
        "A real result that still comes for a marked one is kept as late.",
    )
    parser.add_argument(
        "--older-than", type=read_age_us, default=_HOUR_US, metavar="AGE",
        help="started at least so long ago, such as 30m (default: 1h)",
    )  # fmt: skip
    parser.add_argument("--mark", action="store_true", help="mark them failed (orphaned)")
    _add_limit(parser)
    parser = add_command(
        commands, "usage", "observed:usage", "add up what turns and tool calls used"
    )
    parser.add_argument("--by", choices=USAGE_BY, default="model", help="default: model")
    _add_times(parser)
    parser = add_command(
        commands,
        "settled",
        "observed:settled",
        "say whether answers as of a moment can still change",
    )
    add_as_of(parser)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=int, default=100, metavar="N", help="at most so many (default: 100)"
    )


def _add_page(parser: argparse.ArgumentParser) -> None:
    _add_limit(parser)
    parser.add_argument("--after", type=int, metavar="INDEX", help="go on behind this one")
    add_as_of(parser)


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since-ms", type=int, metavar="MS", help="from this time on")
    parser.add_argument("--until-ms", type=int, metavar="MS", help="before this time")


def _add_options(parser: argparse.ArgumentParser, **options: str) -> None:
    for name, help_ in options.items():
        metavar = "MS" if name.endswith("_ms") else "TEXT"
        kind = int if name.endswith("_ms") else str
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, metavar=metavar, help=help_)


def _read_counts(text: str) -> dict[str, Any]:
    """Counts by name; which names and numbers they may have, the ledger says."""
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        counts = None
    if not isinstance(counts, dict):
        raise argparse.ArgumentTypeError(f"{text!r:.60} is no JSON object of counts")
    return counts


def _add_usage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--usage", type=_read_counts, metavar="JSON", help='such as {"input_tokens": 12}'
    )


def _add_turns(verbs: Commands) -> None:
    parser = add_command(
        verbs, "add", "observed:turn_add", "record a turn, or what it is now",
        "The same id with other content is a new version.",
    )  # fmt: skip
    parser.add_argument("id", metavar="UUID", help="the turn's id")
    parser.add_argument("--message", required=True, metavar="UUID", help="the message's id")
    parser.add_argument("--kind", required=True, choices=TURN_KINDS, help="who speaks")
    parser.add_argument("content", metavar="CONTENT", help="what was said")
    _add_options(
        parser, parent="the message before", thread="the thread", session="the open session",
        actor="who", model="the model", occurred_at_ms="when, by the caller's clock",
        attributes="more about it, as JSON",
    )  # fmt: skip
    _add_usage(parser)
    parser = add_command(verbs, "retract", "observed:turn_retract", "take a turn back")
    parser.add_argument("id", metavar="UUID", help="the turn's id")
    parser.add_argument("--reason", metavar="TEXT", help="why")
    parser = add_command(verbs, "show", "observed:turn_show", "show one turn")
    parser.add_argument("id", metavar="UUID", help="the turn's id")
    add_as_of(parser)
    parser = add_command(verbs, "list", "observed:turn_list", "show turns, oldest first")
    _add_options(
        parser, thread="only of this thread", message="only of this message",
        session="only of this session", since_ms="from this time on",
    )  # fmt: skip
    parser.add_argument("--newest-first", action="store_true", help="the other way round")
    _add_page(parser)


def _add_call_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("request", metavar="UUID", help="the request's id")
    parser.add_argument("call", metavar="CALL", help="the call's id within it")


def _add_calls(verbs: Commands) -> None:
    parser = add_command(verbs, "request", "observed:call_request", "record that a tool is called")
    _add_call_key(parser)
    parser.add_argument("--vendor", required=True, metavar="NAME", help="whose tool or model it is")
    parser.add_argument("--tool", required=True, metavar="NAME", help="the tool")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--arguments", metavar="JSON", help="what it is called with")
    what.add_argument("--args-sha256", metavar="HEX", help="instead: the digest of it")
    _add_options(
        parser, parent="the message it answers", session="the open session", actor="who",
        model="the model", started_at_ms="when, by the caller's clock",
        attributes="more about it, as JSON",
    )  # fmt: skip
    parser = add_command(verbs, "finish", "observed:call_finish", "record how a tool call ended")
    _add_call_key(parser)
    parser.add_argument("status", choices=FINISHED, help="how")
    _add_options(
        parser, outcome="what it answered, as JSON", error_kind="what kind of error",
        error_msg="the error's words", ended_at_ms="when", latency_ms="how long it took",
    )  # fmt: skip
    _add_usage(parser)
    for name, what_it_does in (
        ("show", "show one tool call"),
        ("history", "show every version of a tool call, oldest first"),
    ):
        parser = add_command(verbs, name, f"observed:call_{name}", what_it_does)
        _add_call_key(parser)
        if name == "show":
            add_as_of(parser)
    parser = add_command(verbs, "list", "observed:call_list", "show tool calls, the newest first")
    _add_options(
        parser, request="only of this request", parent="only of this message",
        session="only of this session", tool="only of this tool", vendor="only of this vendor",
    )  # fmt: skip
    parser.add_argument("--status", choices=CALL_STATUSES, help="only those in this state")
    _add_times(parser)
    _add_page(parser)
    parser = add_command(verbs, "decide", "observed:call_decide", "record who allowed a tool call")
    _add_call_key(parser)
    _add_decision(parser)


def _add_decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("decision", choices=DECISIONS, help="which way")
    parser.add_argument("--by", required=True, metavar="WHO", help="who decided")
    parser.add_argument("--reason", metavar="TEXT", help="why")


def _add_proposals(verbs: Commands) -> None:
    parser = add_command(verbs, "create", "observed:proposal_create", "record a proposal")
    parser.add_argument("request", metavar="UUID", help="the request's id")
    parser.add_argument("--diffs", required=True, metavar="JSON", help="what is to change")
    parser.add_argument("--confidence", type=float, metavar="X", help="from 0 to 1")
    parser.add_argument("--session", metavar="ID", help="the open session")
    parser = add_command(verbs, "decide", "observed:proposal_decide", "approve or deny a proposal")
    parser.add_argument("request", metavar="UUID", help="the request's id")
    _add_decision(parser)
    _add_options(parser, decided_at_ms="when, by the caller's clock")
    for name, said in (("apply", "was applied"), ("revert", "was taken back")):
        handler = f"observed:proposal_{name}"
        parser = add_command(verbs, name, handler, f"record that a proposal {said}")
        parser.add_argument("request", metavar="UUID", help="the request's id")
        parser.add_argument("--commit", metavar="HASH", help="the commit")
        _add_options(parser, at_ms="when, by the caller's clock")
    parser = add_command(verbs, "show", "observed:proposal_show", "show one proposal")
    parser.add_argument("request", metavar="UUID", help="the request's id")
    add_as_of(parser)
    parser = add_command(
        verbs, "list", "observed:proposal_list", "show proposals, the newest first"
    )
    parser.add_argument("--status", choices=PROPOSAL_STATUSES, help="only those in this state")
    parser.add_argument("--since-ms", type=int, metavar="MS", help="from this time on")
    _add_page(parser)
