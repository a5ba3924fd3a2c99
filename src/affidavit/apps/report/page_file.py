"""Puts evidence and the page that checks it into one HTML file.

The page in `page/` is plain HTML, CSS and JavaScript. Nothing of the evidence is ever put into
markup: it goes, as JSON, into a data block that the script reads, and from there into text nodes.
The policy in the page's head allows exactly its one script and its one style, by their hashes, and
no connection at all.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

_SCRIPTS: Final = (
    "bytes", "canonical", "merkle", "note", "evidence", "chains", "check", "seal", "archive",
    "kept", "diff", "dom", "story", "page",
)  # fmt: skip


def render_page(parts: Mapping[str, bytes]) -> str:
    """The page over the parts of an evidence file, which it can give back as that file."""
    texts = {name: data.decode() for name, data in parts.items()}
    # In a data block only `<` could end it; JSON may spell it as an escape.
    data = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    before, after = _frame()
    return f"{before}{data}{after}"


@cache
def _frame() -> tuple[str, str]:
    """The page before its evidence and behind it."""
    style = _read("style.css")
    script = f'"use strict";\n(() => {{\n{checking_script()}\n{_read("page.js")}}})();\n'
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _read("template.html")
    for name, text in (("policy", policy), ("style", style), ("script", script)):
        page = page.replace(f"{{{{ {name} }}}}", text)
    before, _, after = page.partition("{{ evidence }}")
    return before, after


def checking_script() -> str:
    """What checks and shows, without the part that starts it; its names are global."""
    return "\n".join(_read(f"{name}.js") for name in _SCRIPTS[:-1])


def _read(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
