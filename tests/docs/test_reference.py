"""The reference holds every call, setting, error and finding, as the code has them now."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from affidavit.apps.mcp.service import TOOLS
from affidavit.errors import CODES
from affidavit.ledger.ledger import Ledger
from affidavit.ledger.settings import SETTINGS
from affidavit.verify.findings import FINDING_CODES

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def text_of(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def test_the_generated_parts_are_current() -> None:
    pages = [
        "README.md",
        "docs/threat-model.md",
        *(str(page) for page in sorted(REFERENCE.glob("*.md"))),
    ]
    command = [sys.executable, "-m", "cogapp", "--check", *pages]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `make docs`: {done.stdout}{done.stderr}"


def test_every_public_call_is_documented() -> None:
    calls = [name for name in dir(Ledger) if not name.startswith("_")]
    assert [name for name in calls if f"`{name}" not in text_of("python.md")] == []


def test_every_setting_is_documented() -> None:
    assert [name for name in SETTINGS if f"`{name}`" not in text_of("python.md")] == []


def test_every_error_code_is_documented() -> None:
    assert [code for code in CODES if f"| `{code}` |" not in text_of("errors.md")] == []


def test_every_finding_code_is_explained() -> None:
    assert [code for code in FINDING_CODES if f"| `{code}` |" not in text_of("errors.md")] == []


def test_every_tool_is_documented() -> None:
    assert [tool.name for tool in TOOLS if f"### `{tool.name}`" not in text_of("mcp.md")] == []


def test_every_link_inside_the_documentation_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    broken = []
    for page in pages:
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [f"{page}: {name}" for name in targets if not (page.parent / name).exists()]
    assert broken == []


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [page.name[:4] for page in sorted((ROOT / "docs/decisions").glob("0*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


def test_every_file_named_in_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+\.(?:py|sql|md))`", text))
    known = {str(item.relative_to(ROOT)) for item in ROOT.rglob("*.*") if ".venv" not in str(item)}
    assert [name for name in named if not any(item.endswith(name) for item in known)] == []
