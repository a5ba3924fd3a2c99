"""Builds `affidavit-verify.pyz`: the auditor's part in one file that Python runs as it is.

It holds errors, core and verify, and the auditor's shell around them: nothing that records, and
nothing but the standard library and `cryptography` is imported. The same source gives the same
bytes.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
PARTS = (
    "__init__.py", "errors.py", "core/**/*.py", "verify/**/*.py", "apps/__init__.py",
    "apps/places.py", "apps/durable_files.py", "apps/auditor/*.py", "apps/cli/__init__.py",
    "apps/cli/answering.py", "apps/cli/parsing.py", "apps/cli/printing.py", "apps/cli/render.py",
    "apps/plain.py",
)  # fmt: skip
MAIN = """\
import sys

from affidavit.apps.auditor.__main__ import main

sys.exit(main(sys.argv[1:]))
"""


def build(target: Path) -> None:
    """Write the file."""
    package = SOURCE / "affidavit"
    files = {path for part in PARTS for path in package.glob(part)}
    texts = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in files}
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in sorted({**texts, "__main__.py": MAIN}.items()):
                archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    target.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
