"""What a ledger's user and a signer say to each other over a Unix socket.

    <length, 4 bytes, big-endian><JSON>        one question and one answer a connection

A message has at most 64 KiB and must be there within seconds; whoever sends anything else loses the
connection. What a question holds is checked by its schema before anybody looks at it.
"""

from __future__ import annotations

import socket
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from affidavit.apps.peers import LENGTH_BYTES, receive_message
from affidavit.core.checkpoint import SIZE_MAX
from affidavit.errors import CODES, AffidavitError, StoreError

MESSAGE_BYTES_MAX: Final = 65_536
PATIENCE_S: Final = 5.0

Name = Annotated[str, Meta(min_length=1, max_length=1_024)]
Size = Annotated[int, Meta(ge=0, le=SIZE_MAX)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Hashes = Annotated[tuple[Hash, ...], Meta(max_length=128)]
Names = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=16)]


class Question(Struct, frozen=True, forbid_unknown_fields=True, tag_field="ask"):
    """Anything that can be asked."""


class HasKey(Question, frozen=True, tag="has_key"):
    """Whether the signer has a key."""

    vkey: Name


class MakeKey(Question, frozen=True, tag="make_key"):
    """A new key for an origin."""

    origin: Name


class Last(Question, frozen=True, tag="last"):
    """The newest note signed for an origin."""

    origin: Name


class Sign(Question, frozen=True, tag="sign"):
    """A tree head, and the proof that the log only grew since the newest note."""

    origin: Name
    size: Size
    root: Hash
    old_size: Size
    proof: Hashes
    vkeys: Names


AnyQuestion = HasKey | MakeKey | Last | Sign
_questions: Final = msgspec.json.Decoder(AnyQuestion)


def read_question(data: bytes) -> AnyQuestion:
    """What was asked; anything that is no question is a ValueError."""
    found: AnyQuestion = _questions.decode(data)
    return found


def encode_error(error: AffidavitError) -> dict[str, Any]:
    """A refusal, for the other side to raise again."""
    return {"error": {**error.to_dict(), "details": {}}}


def raise_error(told: Any) -> None:
    """Raise a refusal as it was on the other side."""
    known = CODES.get(str(told["code"]))
    if known is None:
        raise StoreError(f"the signer refused ({told['code']!r:.100})")
    raise known.error(str(told["message"]), code=str(told["code"]), hint=str(told["hint"]))


def send(connection: socket.socket, message: Any) -> None:
    """Send one message whole."""
    data = msgspec.json.encode(message)
    connection.settimeout(PATIENCE_S)
    connection.sendall(len(data).to_bytes(LENGTH_BYTES, "big") + data)


def receive(connection: socket.socket, patience_s: float = PATIENCE_S) -> bytes:
    """One message; too long, too late or cut short is a ValueError or an OSError."""
    return receive_message(connection, MESSAGE_BYTES_MAX, patience_s)
