"""What somebody recorded, made safe to show to a person, on a terminal and on a page.

Control characters are spelled out: a record must not be able to move the cursor, recolour the
terminal, reorder a line, or pass for a line of ours.
"""

from __future__ import annotations

import re

# C0 but tab and line feed, DEL, C1; what reorders or breaks lines; halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Text that somebody recorded, safe to show; it may have several lines."""
    return _UNSAFE.sub(_spell_out, text.replace("\r\n", "\n"))


def one_line(text: object) -> str:
    """The same on one line."""
    return plain(str(text)).replace("\n", "\\n").replace("\t", " ")


def _spell_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
