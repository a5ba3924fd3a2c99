"""A text that is kept beside the log, where it may be erased."""

from __future__ import annotations

from typing import Final, NamedTuple


class Payload(NamedTuple):
    """A text that somebody wrote, and the salt of the commitment to it."""

    text: str | None
    salt: bytes | None


NO_PAYLOAD: Final = Payload(None, None)
