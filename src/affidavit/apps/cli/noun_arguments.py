"""What the commands about sessions, tasks and signing are called, take and say about themselves."""

from __future__ import annotations

import argparse
from typing import Final

from affidavit.apps.cli.parsing import (
    Commands,
    add_as_of,
    add_command,
    add_key,
    add_noun,
    read_age_us,
    read_sizes,
)
from affidavit.core.lifecycle import TASK_STATES

# The same words as in the input schemas, which are too heavy to load here; a test compares them.
SESSION_STATES: Final = ("open", "sealed", "ended")
END_REASONS: Final = ("done", "lost", "failed")
_LIMIT: Final = "at most so many (default: 100)"
CLEARABLE: Final = ("project_id", "description", "priority", "assignee")


def add_sessions(commands: Commands) -> None:
    """`affidavit session ...`."""
    verbs = add_noun(commands, "session", "start, list, show, seal and end sessions")
    _add_session_start(verbs)
    parser = add_command(verbs, "list", "session:list_", "show sessions, newest first")
    parser.add_argument("--task", metavar="ID", help="only those of this task")
    parser.add_argument("--state", choices=SESSION_STATES, help="only those in this state")
    parser.add_argument("--after", metavar="ID", help="only those older than this session")
    add_as_of(parser)
    parser.add_argument("--limit", type=int, default=100, metavar="N", help=_LIMIT)
    parser = add_command(verbs, "show", "session:show", "show one session")
    parser.add_argument("session", metavar="ID", help="the session's id")
    add_as_of(parser)
    parser = add_command(
        verbs,
        "seal",
        "session:seal",
        "seal a session: its records get one root, and it takes no more",
        "Its chain is verified first. Sealing it again gives the same answer.",
    )
    parser.add_argument("session", nargs="?", metavar="ID", help="the session's id")
    parser.add_argument(
        "--idle",
        type=read_age_us,
        metavar="AGE",
        help="instead: every unsealed session that has records and was not touched for "
        "this long (30m, 24h, 7d)",
    )
    add_key(parser)
    parser = add_command(verbs, "root", "session:root", "show the root of a sealed session")
    parser.add_argument("session", metavar="ID", help="the session's id")
    parser = add_command(
        verbs, "end", "session:end", "end a session", "Ending it again gives the same answer."
    )
    parser.add_argument("session", metavar="ID", help="the session's id")
    parser.add_argument(
        "--reason", choices=END_REASONS, default="done", help="how it ended (default: done)"
    )
    add_key(parser)


def _add_session_start(verbs: Commands) -> None:
    parser = add_command(
        verbs,
        "start",
        "session:start",
        "start a session",
        "Makes the ledger where there is none.",
    )
    parser.add_argument("--intent", required=True, metavar="TEXT", help="what it is for")
    parser.add_argument("--caller", metavar="NAME", help="who starts it")
    parser.add_argument("--task", metavar="ID", help="the task it works on")
    parser.add_argument("--session", metavar="ID", help="its id (default: a fresh one)")
    parser.add_argument("--continues", metavar="ID", help="the sealed or ended one it goes on from")
    parser.add_argument("--project", metavar="NAME", help="the project it works in")
    parser.add_argument("--model", metavar="NAME", help="the model that works in it")
    parser.add_argument(
        "--proof-grade", action="store_true", help="seal only behind a closing reflection"
    )
    add_key(parser)


def add_tasks(commands: Commands) -> None:
    """`affidavit task ...`."""
    verbs = add_noun(commands, "task", "create, list, change and finish tasks")
    parser = add_command(
        verbs, "create", "task:create", "create a task", "Makes the ledger where there is none."
    )
    parser.add_argument("--title", required=True, metavar="TEXT", help="what is to be done")
    parser.add_argument(
        "--status", choices=TASK_STATES, default="INIT", help="where it starts (default: INIT)"
    )
    _add_task_fields(parser)
    add_key(parser)
    parser = add_command(verbs, "get", "task:get", "show one task")
    parser.add_argument("task", metavar="ID", help="the task's id")
    add_as_of(parser)
    _add_task_list(verbs)
    _add_task_update(verbs)
    parser = add_command(
        verbs,
        "transition",
        "task:transition",
        "move a task along its lifecycle",
        "INIT, GATHER, ANALYZE, PLAN, APPLY, VERIFY, DONE; from VERIFY back to GATHER; "
        "CANCELLED, with a reason, from everywhere.",
    )
    parser.add_argument("task", metavar="ID", help="the task's id")
    parser.add_argument("to", metavar="STATE", choices=TASK_STATES, help=", ".join(TASK_STATES))
    parser.add_argument("--reason", metavar="TEXT", help="why; needed to cancel")
    add_key(parser)
    add_command(verbs, "next", "task:next_", "show every task that is not finished, oldest first")
    parser = add_command(
        verbs, "delete", "task:delete", "delete a task", "Its history stays in the log."
    )
    parser.add_argument("task", metavar="ID", help="the task's id")
    parser.add_argument("--reason", metavar="TEXT", help="why")
    add_key(parser)


def _add_task_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="ID", help="the project it belongs to")
    parser.add_argument("--description", metavar="TEXT", help="more about it")
    parser.add_argument("--priority", metavar="TEXT", help="how urgent it is, in your words")
    parser.add_argument("--assignee", metavar="NAME", help="who does it")


def _add_task_list(verbs: Commands) -> None:
    parser = add_command(verbs, "list", "task:list_", "show tasks, oldest first")
    parser.add_argument("--status", choices=TASK_STATES, help="only those in this state")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--project", metavar="ID", help="only those of this project")
    which.add_argument("--no-project", action="store_true", help="only those without a project")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help=_LIMIT)
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("--include-deleted", action="store_true", help="deleted ones too")
    add_as_of(parser)


def _add_task_update(verbs: Commands) -> None:
    parser = add_command(
        verbs,
        "update",
        "task:update",
        "change fields of a task",
        "A task is DONE only after a record of it was written.",
    )
    parser.add_argument("task", metavar="ID", help="the task's id")
    parser.add_argument("--title", metavar="TEXT", help="what is to be done")
    parser.add_argument("--status", choices=TASK_STATES, help="where it stands")
    _add_task_fields(parser)
    parser.add_argument(
        "--clear",
        action="append",
        default=[],
        choices=CLEARABLE,
        help="leave this field without a value; may be repeated",
    )
    add_key(parser)


def add_signing(commands: Commands) -> None:
    """`affidavit checkpoint`, `publish`, `prove`, `key ...` and `recover`."""
    add_command(
        commands,
        "checkpoint",
        "signing:checkpoint",
        "sign the log as it is, and print the signed note",
        "Keep the note elsewhere: nothing it covers can be changed unseen any more. The first "
        "time, a key is made in this user's key folder.",
    )
    _add_publish(commands)
    _add_prove(commands)
    _add_signer(commands)
    verbs = add_noun(commands, "key", "show, add and retire the keys that sign for the log")
    add_command(verbs, "show", "signing:show_keys", "show the keys, oldest first")
    parser = add_command(
        verbs,
        "add",
        "signing:add_key",
        "add a key beside the present one",
        "A checkpoint with both signatures is signed at once.",
    )
    _add_said(parser)
    parser = add_command(verbs, "retire", "signing:retire_key", "let a key sign no more")
    parser.add_argument("vkey", metavar="VKEY", help="the verifier key, as `key show` prints it")
    _add_said(parser)
    parser = add_command(
        commands,
        "recover",
        "signing:recover",
        "decide how signing goes on after it was refused",
        "Every decision is recorded in the log.",
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument(
        "--adopt",
        dest="how",
        action="store_const",
        const="adopt",
        help="this is the newest copy of the ledger: sign it under the name it has",
    )
    how.add_argument(
        "--new-origin",
        dest="how",
        action="store_const",
        const="new-origin",
        help="go on as another log, with a name and a key of its own",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why")


def _add_said(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", metavar="WHO", help="who decides it")
    parser.add_argument("--reason", metavar="TEXT", help="why")


def _add_publish(commands: Commands) -> None:
    parser = add_command(
        commands,
        "publish",
        "signing:publish",
        "publish the log in a folder, as tiles that anybody can check",
        "A checkpoint is signed first. The folder can be served by any web server, as it is. "
        "Entries are in it where the setting publish=entries says so, else only hashes.",
    )
    parser.add_argument("--to", required=True, metavar="DIR", help="the folder; made if missing")


def _add_signer(commands: Commands) -> None:
    parser = add_command(
        commands,
        "signer",
        "signer:signer",
        "sign for other users of this machine, with keys they cannot read",
        "Runs until it is stopped. The others set AFFIDAVIT_SIGNER to the socket; what they ask "
        "to have signed must be what was signed before, grown.",
    )
    parser.add_argument("--socket", required=True, metavar="PATH", help="where it listens")
    parser.add_argument(
        "--allow",
        action="append",
        required=True,
        metavar="USER",
        help="a user, by name or number, who may ask; may be repeated",
    )


def _add_prove(commands: Commands) -> None:
    parser = add_command(
        commands,
        "prove",
        "signing:prove",
        "prove that a record is in the log, or that the log only grew",
        "The proof of a record ends in a checkpoint signed now; without --json it is printed "
        "as a c2sp.org/tlog-proof.",
    )
    parser.add_argument("record", nargs="?", metavar="RECORD", help="the record's id")
    parser.add_argument(
        "--growth",
        type=read_sizes,
        metavar="OLD[:NEW]",
        help="instead: that the log of OLD entries begins that of NEW (default: as it is)",
    )
