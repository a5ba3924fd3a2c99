"""What the commands about what is kept are called, take and say about themselves."""

from __future__ import annotations

from typing import Final

from affidavit.apps.cli.parsing import Commands, add_command, read_age_us

# The same words as in the ledger, which is too heavy to load here; a test compares them.
RETAINED: Final = ("tool_call", "turn", "proposal")


def add_keeping(commands: Commands) -> None:
    """`affidavit search`, `size`, `tail`, `diff`, `erase` and `retain`."""
    _add_search(commands)
    _add_looks(commands)
    _add_erase(commands)
    _add_retain(commands)


def _add_looks(commands: Commands) -> None:
    add_command(
        commands,
        "size",
        "inspecting:size",
        "show what takes the space, and what a year at this rate will take",
    )
    parser = add_command(
        commands, "tail", "inspecting:tail", "print the newest facts, and others as they come"
    )
    parser.add_argument("--follow", "-f", action="store_true", help="go on until interrupted")
    parser.add_argument(
        "--lines", "-n", type=int, default=10, metavar="N", help="begin so many before the end (10)"
    )
    parser.add_argument("--jsonl", action="store_true", help="a line of JSON for each fact")
    parser = add_command(
        commands,
        "diff",
        "inspecting:diff",
        "compare two sessions step by step",
        "Marks what is alike (=), what has other texts (~), and what only one of them has (- +).",
    )
    parser.add_argument("first", metavar="S1", help="one session's id")
    parser.add_argument("second", metavar="S2", help="the other's")


def _add_retain(commands: Commands) -> None:
    parser = add_command(
        commands,
        "retain",
        "retain:retain",
        "keep texts of tool calls, turns and proposals for a period",
        "Sets the period and erases what is older; without --kind it applies the periods that are "
        "set. `affidavit serve` applies them every hour; else `affidavit doctor` says how overdue "
        "they are. Decisions go by `affidavit erase` alone.",
    )
    parser.add_argument("--kind", choices=RETAINED, help="texts of which kind")
    parser.add_argument(
        "--older-than",
        type=read_age_us,
        metavar="AGE",
        help="how long they are kept, in whole days (90d); 0d keeps them for ever",
    )
    parser.add_argument("--by", metavar="WHO", help="who decides that")


def _add_search(commands: Commands) -> None:
    """`affidavit search`."""
    parser = add_command(
        commands,
        "search",
        "search:search",
        "find what was written by its words",
        "All the words must be in a text; `word*` stands for every word that begins so. Parts of "
        "identifiers are words too.",
    )
    parser.add_argument("words", nargs="+", metavar="WORD", help="what to look for")
    parser.add_argument("--kind", metavar="KIND", help="only thought, task, turn, tool_call, ...")
    parser.add_argument("--session", metavar="ID", help="only in this session")
    parser.add_argument("--task", metavar="ID", help="only in this task")
    parser.add_argument(
        "--since", type=read_age_us, metavar="AGE", help="only what is younger (30m, 24h, 7d)"
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many (20)")


def _add_erase(commands: Commands) -> None:
    parser = add_command(
        commands,
        "erase",
        "erase:erase",
        "take texts away for good, and leave the facts",
        "Shows what will go and asks. The text, its salt and its digests leave every file of the "
        "ledger; the log says who erased what, and why. docs/howto/erase-and-retain.md names the "
        "copies it cannot reach.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID", help="every text of this session")
    which.add_argument("--record", metavar="ID", help="the text of this record")
    which.add_argument("--turn", metavar="ID", help="every version of this turn")
    which.add_argument("--matching", metavar="TEXT", help="every text that holds these words")
    parser.add_argument("--by", metavar="WHO", help="who erases (else the name of this user)")
    parser.add_argument("--reason", metavar="TEXT", help="why; it goes into the log")
    parser.add_argument("--yes", action="store_true", help="do not ask")
