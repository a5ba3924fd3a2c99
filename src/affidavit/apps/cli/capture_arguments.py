"""What the commands take that record an agent's client."""

from __future__ import annotations

from affidavit.apps.cli.parsing import Commands, add_command

CLIENTS = ("claude-code",)


def add_capture(commands: Commands) -> None:
    """`affidavit hook`."""
    parser = add_command(
        commands,
        "hook",
        "hook:hook",
        "take one event of an agent's client from stdin",
        "The client runs this by itself. The event is on disk when it "
        "ends, and in the ledger a moment later. Ends with 0 whatever happens; what goes wrong is "
        "in a log, and `affidavit doctor` tells it.",
    )
    parser.add_argument("client", choices=CLIENTS, help="whose event it is")
