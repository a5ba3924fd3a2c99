"""Every error that leaves this package, in one tree.

    AffidavitError            .code  .hint  .details
    |- InputError(ValueError)     the caller can fix it
    |- ConflictError              state says no (sealed, wrong transition); .retryable
    |- StoreError                 the environment: unavailable, full, too new, locked
    |- CannotVerify               not enough to judge
    '- IntegrityViolation         checked and false; evidence in .details; never retried

A message says what happened, with the value and the place; a hint says what to do next; neither
holds secrets or payloads. `CODES` is the one table from which exit codes and HTTP answers are made.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class AffidavitError(Exception):
    """Base of all: a stable code, a hint, and details a program can read."""

    default_code = "HANDLER_ERROR"
    default_hint = ""

    def __init__(
        self, message: str, *, code: str | None = None, hint: str = "", **details: Any
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.hint = hint or self.default_hint
        self.details: dict[str, Any] = details

    @property
    def message(self) -> str:
        """What happened, without the hint."""
        return str(self.args[0])

    def to_dict(self) -> dict[str, Any]:
        """The error as every surface shows it."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "details": self.details,
        }


class InputError(AffidavitError, ValueError):
    """Something in the call is not acceptable; `.field` names the argument."""

    default_code = "INVALID_PARAMS"
    default_hint = "Correct it and call again."

    @property
    def field(self) -> str | None:
        """The argument at fault, where there is one."""
        return self.details.get("field")


class ConflictError(AffidavitError):
    """The call is well formed, but the ledger's state does not allow it."""

    retryable = False


class StoreError(AffidavitError):
    """The environment failed: disk, lock, permissions, file version."""

    default_code = "ERR_STORE_UNAVAILABLE"


class CannotVerify(AffidavitError):
    """Something needed for a verdict is missing; neither good nor bad is claimed."""

    default_code = "ERR_CANNOT_VERIFY"


class IntegrityViolation(AffidavitError):
    """Something was checked and does not hold."""

    default_code = "ERR_INTEGRITY"


class CodeInfo(NamedTuple):
    """What a code means at the edges."""

    error: type[AffidavitError]
    exit_code: int
    http_status: int


CODES: dict[str, CodeInfo] = {
    "INVALID_PARAMS": CodeInfo(InputError, 2, 422),
    "ERR_NOT_FOUND": CodeInfo(InputError, 2, 404),
    "ERR_SESSION_NOT_FOUND": CodeInfo(InputError, 2, 404),
    "ERR_TOO_LARGE": CodeInfo(InputError, 2, 413),
    "ERR_READONLY": CodeInfo(ConflictError, 4, 403),
    "ERR_DUPLICATE_RECORD": CodeInfo(ConflictError, 2, 409),
    "ERR_SESSION_EXISTS": CodeInfo(ConflictError, 2, 409),
    "ERR_SESSION_OPEN": CodeInfo(ConflictError, 2, 409),
    "ERR_SESSION_ENDED": CodeInfo(ConflictError, 2, 409),
    "ERR_SESSION_SEALED": CodeInfo(ConflictError, 2, 409),
    "ERR_CLOSING_REFLECTION_REQUIRED": CodeInfo(ConflictError, 2, 409),
    "ERR_NOT_FINALIZED": CodeInfo(ConflictError, 2, 409),
    "ERR_NO_RECORDS": CodeInfo(ConflictError, 2, 409),
    "ERR_INVALID_TRANSITION": CodeInfo(ConflictError, 2, 409),
    "ERR_INVALID_LIFECYCLE": CodeInfo(ConflictError, 2, 409),
    "ERR_TRANSACTION_OPEN": CodeInfo(ConflictError, 4, 409),
    "ERR_TRANSACTION_ENDED": CodeInfo(ConflictError, 4, 409),
    "ERR_WRITEBACK_REQUIRED": CodeInfo(ConflictError, 2, 409),
    "ERR_IDEMPOTENCY_MISMATCH": CodeInfo(ConflictError, 2, 409),
    "ERR_KEY_MISSING": CodeInfo(ConflictError, 4, 409),
    "ERR_GUARD_MISSING": CodeInfo(ConflictError, 4, 409),
    "ERR_KEY_LIMIT": CodeInfo(ConflictError, 4, 409),
    "ERR_ORIGIN_CHANGED": CodeInfo(ConflictError, 2, 409),
    "ERR_OTHER_LOG": CodeInfo(ConflictError, 2, 409),
    "ERR_ORIGIN_REFUSED": CodeInfo(InputError, 2, 403),
    "ERR_TOO_SLOW": CodeInfo(InputError, 2, 408),
    "ERR_EXTRA_MISSING": CodeInfo(StoreError, 4, 503),
    "ERR_ADDRESS_IN_USE": CodeInfo(StoreError, 4, 503),
    "ERR_STORE_UNAVAILABLE": CodeInfo(StoreError, 4, 503),
    "ERR_STORE_LOCKED": CodeInfo(StoreError, 4, 503),
    "ERR_STORE_FULL": CodeInfo(StoreError, 4, 503),
    "ERR_OUTCOME_UNKNOWN": CodeInfo(StoreError, 4, 503),
    "ERR_LEDGER_TOO_NEW": CodeInfo(StoreError, 4, 503),
    "ERR_NOT_A_LEDGER": CodeInfo(StoreError, 4, 503),
    "ERR_CANNOT_VERIFY": CodeInfo(CannotVerify, 3, 422),
    "ERR_INTEGRITY": CodeInfo(IntegrityViolation, 1, 500),
    "ERR_CHAIN_BROKEN": CodeInfo(IntegrityViolation, 1, 500),
    "HANDLER_ERROR": CodeInfo(AffidavitError, 70, 500),
}


def invalid(field: str, message: str, *, hint: str = "", code: str | None = None) -> InputError:
    """An `InputError` that names its field first, the way every surface prints it."""
    return InputError(f"{field}: {message}", code=code, hint=hint, field=field)
