"""What things of Claude Code are called in a ledger, however they came in.

A hook, a transcript and a proxy that tell of the same call must name it alike: then it is one tool
call. Tool use ids are unique over all sessions, and a resumed session repeats those of the session
before it, so nothing here depends on the session.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

SOURCE: Final = "claude-code"
# A session that an MCP server of ours began, in the run that its external id names.
MCP_SOURCE: Final = f"{SOURCE}/mcp"
VENDOR: Final = "anthropic"
# What our own server records itself, in the entry of each call.
OWN_TOOLS: Final = "mcp__affidavit__"
# The variable that names the run a server is started in.
RUN_VARIABLE: Final = "CLAUDE_CODE_SESSION_ID"
# In the `_meta` of an MCP call: the tool use id, which hooks are told too.
TOOL_USE_ID: Final = "claudecode/toolUseId"

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")


def request_id_of(tool_use_id: str) -> str:
    """The request of a tool call, and of the edit it proposes; its call id is the tool use id."""
    return _uuid_of("tool_use", tool_use_id)


def turn_id_of(message_uuid: str, block: int = 0) -> str:
    """The turn of a message: its own UUID, another for each block of text behind the first."""
    plain = message_uuid.lower()
    if block == 0 and _UUID.match(plain):
        return plain
    return _uuid_of("turn", f"{message_uuid} {block}")


def _uuid_of(kind: str, name: str) -> str:
    """A UUID (version 8, RFC 9562) that follows from a name."""
    named = f"{SOURCE} {kind} {name}".encode("utf-8", "replace")
    digest = bytearray(hashlib.sha256(named).digest())
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest[:16].hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
