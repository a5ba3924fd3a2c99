"""Ed25519 by RFC 8032, strict: one answer for one signature, whoever asks.

    accepted    S < L, R exactly as recomputed, and a public key that is a canonical point of an
                order no smaller than the group's

A public key of small order would be fitted by signatures of texts nobody signed, and a key that is
spelled in two ways would have two key IDs. `cryptography` is imported at the first use, because
most who import this package never sign.
"""

from __future__ import annotations

from typing import Final

KEY_BYTES: Final = 32

_P: Final = 2**255 - 19
# The y coordinates of the eight points of small order (RFC 7748, section 7, as Edwards points).
_SMALL_ORDER: Final = frozenset(
    (
        0,
        1,
        _P - 1,
        int.from_bytes(
            bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
            "little",
        ),
        int.from_bytes(
            bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
            "little",
        ),
    )
)


def public_key(secret: bytes) -> bytes:
    """The public key of a 32-byte secret."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - see above
        Ed25519PrivateKey,
    )

    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def sign(secret: bytes, message: bytes) -> bytes:
    """The one signature of a message."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - see above
        Ed25519PrivateKey,
    )

    return Ed25519PrivateKey.from_private_bytes(secret).sign(message)


def is_signature(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether this key signed this message."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - see above
        Ed25519PublicKey,
    )

    if not _is_sound(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_sound(public: bytes) -> bool:
    y = int.from_bytes(public, "little") & (2**255 - 1)  # the top bit is the sign of x
    return len(public) == KEY_BYTES and y < _P and y not in _SMALL_ORDER
