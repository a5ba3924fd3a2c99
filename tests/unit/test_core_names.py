"""What may be written as a name, a text or a time: limits in bytes, and what is never allowed."""

import pytest

from affidavit.core.names import (
    NAME_BYTES_MAX,
    NOTE_BYTES_MAX,
    check_name,
    check_text,
    check_timestamp,
    is_digest,
    is_name,
)
from affidavit.errors import InputError

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]

GOOD_NAMES = {
    "one_byte": "a",
    "spaces_and_signs": "claude code/2.1 (cli) <x@y>",
    "ascii_at_the_limit": "a" * 512,
    "two_bytes_each_at_the_limit": "\u00e9" * 256,
    "four_bytes_each_at_the_limit": "\U0001f600" * 128,
    "not_ascii": "\u4efb\u52a1-\u0661",
    "no_break_space": "a\u00a0b",
    "not_normalised": "A\u030a",
}
TOO_LARGE_NAMES = {
    "ascii": ("a" * 513, 513),
    "two_bytes_each": ("\u00e9" * 257, 514),
    "few_characters_many_bytes": ("\U0001f600" * 128 + "a", 513),
}
NOT_TEXT = {"high": "\ud800", "low": "a\udfff", "wrong_order": "\udc00\ud800"}


def test_the_limits_are_the_documented_ones():
    assert (NAME_BYTES_MAX, NOTE_BYTES_MAX) == (512, 4_096)


@pytest.mark.parametrize("name", GOOD_NAMES.values(), ids=GOOD_NAMES)
def test_a_name_within_the_limit_is_taken(name):
    check_name(name, "agent_id")
    assert is_name(name)


@pytest.mark.parametrize(("name", "size"), TOO_LARGE_NAMES.values(), ids=TOO_LARGE_NAMES)
def test_a_name_over_the_limit_is_refused_with_its_size_in_bytes(name, size):
    with pytest.raises(InputError) as caught:
        check_name(name, "agent_id")
    assert caught.value.code == "ERR_TOO_LARGE"
    assert caught.value.field == "agent_id"
    assert caught.value.hint
    assert caught.value.details["size_bytes"] == size
    assert caught.value.details["limit_bytes"] == NAME_BYTES_MAX
    assert not is_name(name)


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
def test_a_control_character_is_refused_wherever_it_stands(control):
    for name in (control, f"a{control}", f"{control}a", f"\u00e9{control}\u00e9"):
        with pytest.raises(InputError, match=r"^agent_id: "):
            check_name(name, "agent_id")
        assert not is_name(name)


@pytest.mark.parametrize("name", ["", *NOT_TEXT.values()], ids=["empty", *NOT_TEXT])
def test_a_name_that_is_empty_or_not_text_is_refused(name):
    with pytest.raises(InputError) as caught:
        check_name(name, "agent_id")
    assert (caught.value.code, caught.value.field) == ("INVALID_PARAMS", "agent_id")
    caught.value.message.encode()
    assert not is_name(name)


@pytest.mark.parametrize("value", [None, 1, True, b"a", ["a"], {"a": 1}], ids=repr)
def test_what_is_not_a_string_is_no_name(value):
    assert not is_name(value)


@pytest.mark.parametrize("text", ["a", "\n", " ", "\x01\x7f", "a\ufffd", "\U0001f600" * 128])
def test_a_text_may_hold_anything_but_nul(text):
    check_text(text, "content", 512)


@pytest.mark.parametrize(
    ("text", "size"), [("a" * 512, 512), ("\u00e9" * 256, 512), ("\U0001f600" * 128, 512)]
)
def test_the_limit_of_a_text_is_counted_in_bytes(text, size):
    check_text(text, "content", size)
    with pytest.raises(InputError) as caught:
        check_text(text + "a", "content", size)
    assert caught.value.code == "ERR_TOO_LARGE"
    assert caught.value.details["size_bytes"] == size + 1
    assert caught.value.details["limit_bytes"] == size


@pytest.mark.parametrize("limit_bytes", [8, 4_096])
@pytest.mark.parametrize("text", ["", "\x00", "a\x00b", *NOT_TEXT.values()], ids=ascii)
def test_a_text_that_is_empty_or_holds_nul_or_is_not_text_is_refused(text, limit_bytes):
    with pytest.raises(InputError, match=r"^content: ") as caught:
        check_text(text, "content", limit_bytes)
    assert (caught.value.code, caught.value.field) == ("INVALID_PARAMS", "content")


def test_a_large_text_is_taken_by_default():
    check_text("a" * 16 * 1024 * 1024, "content")
    with pytest.raises(InputError) as caught:
        check_text("a" * (16 * 1024 * 1024 + 1), "content")
    assert caught.value.code == "ERR_TOO_LARGE"


@pytest.mark.parametrize(
    "value",
    [
        "2026-04-17T00:00:00Z",
        "2026-04-17T00:00:00.000Z",
        "2026-04-17T23:59:59.123456789Z",
        "2024-02-29T12:00:00Z",
        "2000-02-29T12:00:00Z",
        "2026-12-31T23:59:60Z",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999Z",
    ],
)
def test_a_time_in_utc_is_taken(value):
    check_timestamp(value, "timestamp")


@pytest.mark.parametrize(
    "value",
    [
        "2026-04-17T00:00:00.1+05:30",
        "2026-04-17T00:00:00-00:00",
        "",
        "2026-04-17",
        "2026-04-17T00:00:00",
        "2026-04-17 00:00:00Z",
        "2026-04-17T00:00Z",
        "2026-04-17T00:00:00.Z",
        "2026-04-17T00:00:00,000Z",
        "2026-04-17T00:00:00.0123456789Z",
        "2026-04-17T24:00:00Z",
        "2026-04-17T00:60:00Z",
        "2026-04-17T00:00:61Z",
        "2026-00-17T00:00:00Z",
        "2026-13-17T00:00:00Z",
        "2026-04-00T00:00:00Z",
        "2026-04-32T00:00:00Z",
        "2026-4-17T00:00:00Z",
        "26-04-17T00:00:00Z",
        "12026-04-17T00:00:00Z",
        "2026-04-17T00:00:00+24:00",
        "2026-04-17T00:00:00+05:60",
        "2026-04-17T00:00:00+0530",
        "2026-04-17T00:00:00Z\n",
        " 2026-04-17T00:00:00Z",
        "2026-04-17T00:00:00ZZ",
        "\u0662026-04-17T00:00:00Z",
        "2026-04-17T00:00:00.\u0661Z",
        "1776384000",
        "now",
    ],
    ids=ascii,
)
def test_what_is_not_such_a_time_is_refused(value):
    with pytest.raises(InputError, match=r"^timestamp: ") as caught:
        check_timestamp(value, "timestamp")
    assert caught.value.field == "timestamp"


@pytest.mark.parametrize(
    "date",
    [
        *("2026-02-29", "2026-02-30", "2100-02-29"),
        *("2026-04-31", "2026-06-31", "2026-09-31", "2026-11-31"),
    ],
)
def test_a_day_that_its_month_has_not_is_refused(date):
    with pytest.raises(InputError):
        check_timestamp(f"{date}T00:00:00Z", "timestamp")


def test_the_message_about_a_time_shows_only_its_beginning():
    with pytest.raises(InputError) as caught:
        check_timestamp("x" * 10_000, "timestamp")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", ["0" * 64, "0123456789abcdef" * 4])
def test_sixty_four_lower_case_hex_digits_are_a_digest(value):
    assert is_digest(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "0" * 63,
        "0" * 65,
        "A" * 64,
        "g" * 64,
        "0" * 64 + "\n",
        "\u0661" * 64,
        b"0" * 64,
        None,
        0,
    ],
    ids=ascii,
)
def test_anything_else_is_no_digest(value):
    assert not is_digest(value)
