"""One event of a client's hooks, and what others wrote made to fit the ledger's names and texts."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

from affidavit.core.names import NAME_BYTES_MAX, PAYLOAD_BYTES_MAX

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class Event(NamedTuple):
    """One event: its own name in the spool, when it came, where the project is, what it says."""

    id: str
    at_ms: int
    root: str
    says: dict[str, Any]
    channel: str = "hook"

    @property
    def name(self) -> str:
        """Which kind of event it is."""
        return name_of(self.says.get("hook_event_name")) or "(without a name)"

    @property
    def run(self) -> str | None:
        """What the client calls the session."""
        return name_of(self.says.get("session_id"))

    @property
    def tool(self) -> str:
        """Which tool it is about."""
        return name_of(self.says.get("tool_name")) or "(without a name)"

    @property
    def call_id(self) -> str:
        """What the client calls the tool call; where it does not, the call's own words do."""
        given = name_of(self.says.get("tool_use_id"))
        return (
            given or f"unnamed-{digest_of(self.run, self.tool, self.says.get('tool_input'))[:32]}"
        )


def name_of(value: Any) -> str | None:
    """A text as a name of the ledger; None where there is none."""
    if not isinstance(value, str) or not value:
        return None
    plain = _CONTROL.sub("\ufffd", value).encode("utf-8", "replace")
    if len(plain) <= NAME_BYTES_MAX:
        return plain.decode()
    return f"{plain[:400].decode('utf-8', 'ignore')}~{hashlib.sha256(plain).hexdigest()}"


def project_of(root: str) -> str | None:
    """What a project is called: the last part of its folder."""
    return name_of(root.rstrip("/").rpartition("/")[2])


def text_of(value: Any, bytes_max: int = PAYLOAD_BYTES_MAX) -> str:
    """Anything as a text that can be kept."""
    text = value if isinstance(value, str) else json.dumps(value)
    plain = text.replace("\x00", "\ufffd").encode("utf-8", "replace")
    if len(plain) > bytes_max:
        plain = plain[: bytes_max - 100]
        return plain.decode("utf-8", "ignore") + f"\n[cut; it had {len(text)} characters]"
    return plain.decode()


def json_of(value: Any) -> str | None:
    """A value as JSON text; one that is too large is told by its digest."""
    if value is None:
        return None
    text = json.dumps(value)
    # What is kept of it may be longer: characters may take more bytes than their escapes have.
    if len(text) * 2 <= PAYLOAD_BYTES_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"too_large": True, "bytes": len(text), "sha256": digest})


def digest_of(*parts: Any) -> str:
    """What values have in common that say the same."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
