"""`python -m affidavit`: the command line."""

from __future__ import annotations

from affidavit.apps.cli.main import run

if __name__ == "__main__":
    run()
