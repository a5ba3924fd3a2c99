"""A witness for tests: cosigns a checkpoint as c2sp.org/tlog-cosignature says."""

from __future__ import annotations

from affidavit.core import ed25519
from affidavit.core.note import (
    COSIGNATURE,
    UnverifiedNote,
    UnverifiedSignature,
    VerifierKey,
    parse_note,
)


class Witness:
    """Somebody with a key of type 0x04."""

    def __init__(self, name: str, secret: bytes) -> None:
        self._secret = secret
        self.verifier = VerifierKey(name, COSIGNATURE, ed25519.public_key(secret))

    def cosign(self, note: bytes, time_s: int) -> bytes:
        """The note with one line more."""
        found = parse_note(note)
        message = f"cosignature/v1\ntime {time_s}\n{found.text}".encode()
        value = time_s.to_bytes(8, "big") + ed25519.sign(self._secret, message)
        line = UnverifiedSignature(self.verifier.name, self.verifier.id, value)
        return UnverifiedNote(found.text, (*found.signatures, line)).encode()
