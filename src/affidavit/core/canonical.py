r"""Canonical JSON: RFC 8785 text, strict reading, and the digests taken over it.

Two uses. *Entries and hash inputs* hold a restricted value (keys `[a-z0-9_]+`, no floats), which
`encode_restricted` writes and `decode_restricted` reads back, refusing every other spelling.
*Callers' JSON* may hold any RFC 8785 value: `canonicalize_value` for a Python value, and
`canonicalize_text` for JSON text, which keeps as it came what RFC 8785 refuses.

    >>> encode_restricted({"b": 1, "a": "x\n"})
    b'{"a":"x\\n","b":1}'
    >>> canonicalize_value({"t": 1e-07, "n": 1.0})
    '{"n":1,"t":1e-7}'
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from affidavit.errors import InputError

DEPTH_MAX: Final = 64
INTEGER_MAX: Final = 2**53 - 1

_KEY = re.compile(r"[a-z0-9_]+\Z")
# One JSON token with the white space around it; possessive, so that hostile text costs one pass.
_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<colon>:)"
    r'|(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<scalar>true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?))"
    r"[ \t\n\r]*+"
)
_Kinds = tuple[str, ...]
_VALUE: _Kinds = ("open", "string", "scalar")
_FIRST_ITEM: _Kinds = (*_VALUE, "close")
_FIRST_KEY: _Kinds = ("string", "close")
_KEY_ONLY: _Kinds = ("string",)
_COLON: _Kinds = ("colon",)
_AFTER: _Kinds = ("comma", "close")
_END: _Kinds = ()
_PAIR = {"{": "}", "[": "]"}
# A string without an end takes all that is left, so that hostile text costs one pass.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)

# The standard library's escapes are those of RFC 8785: \" \\ \b \f \n \r \t and \u00xx in lower
# case.
encode_string = encode_basestring


class CanonicalText(NamedTuple):
    """A caller's JSON as it is stored: RFC 8785 text (`jcs`), or as received (`raw`)."""

    text: str
    form: str


def hex_digest(data: bytes) -> str:
    """SHA-256 in lower-case hex."""
    return sha256(data).hexdigest()


def encode_restricted(value: Any) -> bytes:
    """The canonical bytes of a restricted value; anything else is an input error."""
    _check_restricted(value, _Place(None, "value"), 0)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return encode_utf8(text, "value")


def decode_restricted(data: bytes) -> Any:
    """Read canonical bytes; what is not exactly what `encode_restricted` writes is refused."""
    value = parse_json(decode_utf8(data, "value"), "value")
    if encode_restricted(value) != data:
        raise InputError("value: not in canonical form", field="value")
    return value


def encode_utf8(text: str, field: str) -> bytes:
    """UTF-8 bytes; a lone surrogate has none and is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{field}: has a lone surrogate at character {error.start}", field=field
        ) from None


def decode_utf8(data: bytes, field: str) -> str:
    """Text of UTF-8 bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{field}: not UTF-8 at byte {error.start}", field=field) from None


class _Place(NamedTuple):
    """Where in a value we are; written out only when there is something to say about it."""

    above: _Place | None
    step: str | int

    def __str__(self) -> str:
        steps: list[str] = []
        place: _Place | None = self
        while place is not None:
            steps.append(_show_step(place.step) if place.above else str(place.step))
            place = place.above
        return "".join(reversed(steps))[:400]


def _show_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return "." + ascii(step[:40])[1:-1]


def _check_restricted(value: Any, place: _Place, depth: int) -> None:
    kind = type(value)
    if kind is str:
        if "\x00" in value:
            raise _refusal(place, "has a NUL character")
    elif value is None or kind is bool:
        return
    elif kind is int:
        _check_integer(value, place)
    elif kind is dict or kind is list:
        if depth >= DEPTH_MAX:
            raise _refusal(place, f"deeper than {DEPTH_MAX} levels")
        for step, item in _steps(value, place):
            _check_restricted(item, _Place(place, step), depth + 1)
    else:
        raise _refusal(place, f"{kind.__name__} is not allowed here")


def _steps(value: dict[Any, Any] | list[Any], place: _Place) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, list):
        yield from enumerate(value)
        return
    for key, item in value.items():
        if type(key) is not str or not _KEY.match(key):
            raise _refusal(place, "has a key that is not [a-z0-9_]+")
        yield key, item


def _refusal(place: _Place, message: str) -> InputError:
    return InputError(f"{place}: {message}", field=str(place))


def _check_integer(value: int, place: _Place) -> None:
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise _refusal(place, "integer beyond +-(2^53-1)")


def parse_json(text: str, field: str) -> Any:
    """Read JSON text strictly: no repeated key, NaN, integer beyond 2^53-1 or great depth."""
    _check_text_depth(text, field)

    def integer(digits: str) -> int:
        if len(digits) > 17:
            raise InputError(f"{field}: integer beyond +-(2^53-1)", field=field)
        number = int(digits)
        _check_integer(number, _Place(None, field))
        return number

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            raise InputError(f"{field}: a key is repeated", field=field)
        return result

    def constant(name: str) -> Any:
        raise InputError(f"{field}: {name} is not JSON", field=field)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_int=integer, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{field}: not JSON ({error.msg}, character {error.pos})", field=field
        ) from None


def _check_text_depth(text: str, field: str) -> None:
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match.group(1):
            depth += 1
            if depth > DEPTH_MAX:
                raise InputError(f"{field}: deeper than {DEPTH_MAX} levels", field=field)
        elif match.group(2):
            depth -= 1


def canonicalize_value(value: Any, field: str = "value") -> str:
    """RFC 8785 text of a Python value; a value that has none is an input error naming its place."""
    parts: list[str] = []
    _write_value(value, _Place(None, field), 0, parts)
    text = "".join(parts)
    encode_utf8(text, field)
    return text


def canonicalize_text(text: str, field: str = "value") -> CanonicalText:
    """RFC 8785 text of JSON text, or the text itself where RFC 8785 refuses it."""
    encode_utf8(text, field)
    try:
        return CanonicalText(canonicalize_value(parse_json(text, field), field), "jcs")
    except InputError:
        _check_is_json(text, field)
        return CanonicalText(text, "raw")


def _check_is_json(text: str, field: str) -> None:
    """JSON by grammar alone, however deep or large, in one pass without recursion."""
    stack: list[str] = []
    allowed = _VALUE
    position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        kind = token.lastgroup or ""
        if kind not in allowed:
            break
        position = token.end()
        if kind == "open":
            stack.append(token.group("open"))
            allowed = _FIRST_KEY if stack[-1] == "{" else _FIRST_ITEM
        elif kind == "comma":
            allowed = _KEY_ONLY if stack[-1] == "{" else _VALUE
        elif kind == "colon":
            allowed = _VALUE
        elif allowed in (_FIRST_KEY, _KEY_ONLY) and kind == "string":
            allowed = _COLON
        else:
            if kind == "close" and _PAIR[stack.pop()] != token.group("close"):
                break
            allowed = _AFTER if stack else _END
    else:
        if position == len(text) and allowed is _END:
            return
    raise InputError(f"{field}: not JSON at character {position}", field=field)


def _write_value(value: Any, place: _Place, depth: int, parts: list[str]) -> None:
    if value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, str):
        parts.append(encode_string(value))
    elif isinstance(value, int):
        _check_integer(value, place)
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        parts.append(format_number(value, place))
    elif isinstance(value, dict | list | tuple):
        if depth >= DEPTH_MAX:
            raise _refusal(place, f"deeper than {DEPTH_MAX} levels")
        if isinstance(value, dict):
            _write_object(value, place, depth, parts)
        else:
            _write_array(value, place, depth, parts)
    else:
        raise _refusal(place, f"{type(value).__name__} is not a JSON value")


def _write_object(value: dict[Any, Any], place: _Place, depth: int, parts: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise _refusal(place, f"has a key of type {type(key).__name__}")
    # RFC 8785 3.2.3: sorted by UTF-16 code units.
    ordered = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    separator = "{"
    for key in ordered:
        parts.append(f"{separator}{encode_string(key)}:")
        _write_value(value[key], _Place(place, key), depth + 1, parts)
        separator = ","
    parts.append("}" if ordered else "{}")


def _write_array(
    value: list[Any] | tuple[Any, ...], place: _Place, depth: int, parts: list[str]
) -> None:
    separator = "["
    for position, item in enumerate(value):
        parts.append(separator)
        _write_value(item, _Place(place, position), depth + 1, parts)
        separator = ","
    parts.append("]" if value else "[]")


def format_number(value: float, place: object = "value") -> str:
    """A float as ECMAScript prints it (RFC 8785 3.2.2.3)."""
    if not math.isfinite(value):
        raise InputError(f"{place}: {float(value)} is not a JSON number", field=str(place))
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = float.__repr__(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """ECMA-262 Number::toString: `digits` with the decimal point after `point` of them."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    exponent = f"e{point - 1:+d}"
    return digits + exponent if count == 1 else f"{digits[0]}.{digits[1:]}{exponent}"
