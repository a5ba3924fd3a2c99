"""`affidavit version`: what to name in a report of a problem."""

from __future__ import annotations

import argparse
import platform
import sqlite3

from affidavit import __version__
from affidavit.apps.cli.render import Answer


def version(args: argparse.Namespace) -> Answer:
    """The versions of all that decides how this program behaves."""
    del args
    data = {
        "affidavit": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    line = f"affidavit {__version__} (Python {data['python']}, SQLite {data['sqlite']})"
    return Answer(data, [line])
