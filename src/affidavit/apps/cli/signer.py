"""`affidavit signer`: sign for other users of this machine, until told to stop."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import Any

from affidavit.apps import places, wiring
from affidavit.apps.cli.render import Answer, show_note
from affidavit.apps.peers import find_user
from affidavit.apps.signer.desk import Desk
from affidavit.apps.signer.server import SignerServer
from affidavit.apps.signing_files import GuardFolder, KeyFolder


def signer(args: argparse.Namespace) -> Answer:
    """Serve until SIGTERM or SIGINT."""
    allowed = [find_user(name) for name in args.allow]
    if os.geteuid() in allowed:
        show_note("warning: the signer's own user is on its list, so it protects against nobody")
    desk = Desk(
        KeyFolder(places.keys_folder, wiring.new_salt),
        GuardFolder(lambda: places.state_folder() / "signer"),
    )
    path = Path(args.socket).absolute()
    server = SignerServer(path, allowed, desk, show_note)

    def stop(*_: Any) -> None:
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    show_note(f"signing at {path} for user {', '.join(map(str, allowed))}")
    server.run()
    return Answer({"socket": str(path)}, [f"Stopped; {path} is gone."])
