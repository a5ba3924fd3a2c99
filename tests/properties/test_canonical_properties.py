"""Canonical JSON: round trips, the oracle's opinion, and hostile input of every sort."""

import json
import re
import time

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from affidavit.core.canonical import (
    DEPTH_MAX,
    INTEGER_MAX,
    canonicalize_text,
    canonicalize_value,
    decode_restricted,
    encode_restricted,
    parse_json,
)
from affidavit.core.entry import decode_entry
from affidavit.errors import AffidavitError, InputError

HOSTILE_DEPTH = 10_000
SECONDS_MAX = 1.0

integers = st.integers(-INTEGER_MAX, INTEGER_MAX)
plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
# Keys that UTF-16 and code points order differently, controls, and characters to be escaped.
odd_text = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from('\x00\n\r"\\/\x7f\u0080\u2028\ue000\ufb33\uffff\U00010000\U0001f600')
)
restricted_values = st.recursive(
    st.none() | st.booleans() | integers | plain_text,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.from_regex(r"[a-z0-9_]{1,8}", fullmatch=True), inner, max_size=5)
    ),
    max_leaves=20,
)
finite_floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | integers | finite_floats | odd_text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(odd_text, inner, max_size=5),
    max_leaves=20,
)
MARKS = list('{}[],:"\\-+.eE0123456789 \t\n\r')
PARTS = ['"a"', '"b":', '"\\ud800"', '"\\u0000"', "\\u12", "\\n", "\x1f", "01", "-0", "1.", "1.5"]
WORDS = ["true", "false", "null", "nul", "NaN", "Infinity", "-Infinity"]
ODDITIES = ["1e5", "1e999", "9007199254740993", "\ufeff", "\u00a0", "\u2028", "\x00", "\u0661"]
tokens = st.sampled_from([*MARKS, *PARTS, *WORDS, *ODDITIES])
token_soup = st.lists(tokens, max_size=12).map("".join)
any_text = token_soup | st.text(st.characters(exclude_categories=[]))
read_functions = pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda text: parse_json(text, "value"), id="parse_json"),
        pytest.param(canonicalize_text, id="canonicalize_text"),
        pytest.param(lambda text: decode_restricted(to_bytes(text)), id="decode_restricted"),
        pytest.param(lambda text: decode_entry(to_bytes(text)), id="decode_entry"),
    ],
)


def to_bytes(text):
    return text.encode("utf-8", "surrogatepass")


def try_to(read, *arguments):
    """Read or refuse: whatever is raised outside the error tree fails the test."""
    try:
        read(*arguments)
    except AffidavitError as error:
        return error
    return None


def refuse_constant(name):
    raise ValueError(name)


def json_loads(text):
    """Plain JSON by the standard library, whatever its numbers are."""
    return json.loads(text, parse_constant=refuse_constant, parse_int=int, parse_float=float)


def is_json(text):
    try:
        json_loads(text)
    except ValueError:
        return False
    return True


def dump_reversed(value):
    """The canonical text, but with the keys of every object backwards."""
    if isinstance(value, dict):
        members = (f"{json.dumps(k)}:{dump_reversed(value[k])}" for k in sorted(value)[::-1])
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump_reversed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def escape_letters(text):
    """Each string's first character, where it stands as itself, by its number."""
    return re.sub(r'"([^"\\])((?:[^"\\]|\\.)*)"|"(?:[^"\\]|\\.)*"', escape_letter, text)


def escape_letter(match):
    return f'"\\u{ord(match[1]):04x}{match[2]}"' if match[1] else match[0]


def spellings_of(value, canonical):
    """The same value in every other way JSON can spell it."""
    dump = {"sort_keys": True, "ensure_ascii": False}
    found = [
        f" {canonical}",
        f"{canonical} ",
        f"{canonical}\n",
        f"{canonical}\r\n",
        json.dumps(value, separators=(", ", ":"), **dump),
        json.dumps(value, separators=(",", ": "), **dump),
        json.dumps(value, indent=1, **dump),
        json.dumps(value, sort_keys=True, separators=(",", ":")),
        dump_reversed(value),
        canonical.replace("/", "\\/"),
    ]
    if all(ord(letter) < 0x10000 for letter in canonical):
        found.append(escape_letters(canonical))
    return [text for text in found if text != canonical]


@given(restricted_values)
@settings(deadline=None, max_examples=300)
def test_a_restricted_value_comes_back_from_its_bytes(value):
    data = encode_restricted(value)
    assert decode_restricted(data) == value
    assert data == rfc8785.dumps(value)


@given(restricted_values)
@settings(deadline=None, max_examples=200)
@example({"b": "/", "a": [1, "x", {"d": None, "c": True}]})
def test_every_other_spelling_of_a_restricted_value_is_refused(value):
    spellings = spellings_of(value, encode_restricted(value).decode())
    assert len(spellings) >= 4
    for text in spellings:
        assert json.loads(text) == value
        with pytest.raises(InputError):
            decode_restricted(text.encode())


NEVER_WRITTEN = {
    "numbers": [
        "-0",
        "1.0",
        "1e0",
        "0.5",
        "01",
        "+1",
        "NaN",
        "9007199254740992",
        "-9007199254740992",
    ],
    "strings": ['"\\u000A"', '"\\u000a"', '"\\/"', '"\\u0061"', '"\x7f', '"\\u0000"', '"\\ud800"'],
    "objects": ['{"a":1,"a":1}', '{"A":1}', '{"":1}', '{"a-b":1}', '{"\u00e9":1}', '{"b":1,"a":1}'],
    "texts": ["\ufeff1", "[1,]", "", " ", "1 2", "1\n"],
}


@pytest.mark.parametrize("text", [text for texts in NEVER_WRITTEN.values() for text in texts])
def test_bytes_that_the_encoder_never_writes_are_refused(text):
    with pytest.raises(InputError):
        decode_restricted(text.encode())


@pytest.mark.parametrize("data", [b"\xff", b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf5\x80\x80\x80"'])
def test_bytes_that_are_not_utf_8_are_refused(data):
    with pytest.raises(InputError):
        decode_restricted(data)


NOT_RESTRICTED = [
    *(0.5, 1.0, float("nan"), INTEGER_MAX + 1, -INTEGER_MAX - 1, b"x", (1,), {1}, object()),
    *("\x00", "a\x00b", "\ud800", {"A": 1}, {"": 1}, {"a\n": 1}, {1: 1}, {None: 1}, {"\u00e9": 1}),
    {10**5000: 1},
]


@pytest.mark.parametrize("value", NOT_RESTRICTED, ids=lambda value: type(value).__name__)
def test_a_value_outside_the_restriction_is_refused_at_any_depth(value):
    for place in (value, [value], {"a": [value]}):
        with pytest.raises(InputError):
            encode_restricted(place)


def nested(depth, *, array):
    value = None
    for _ in range(depth):
        value = [value] if array else {"a": value}
    return value


@pytest.mark.parametrize("array", [True, False])
def test_the_deepest_value_allowed_is_sixty_four_levels(array):
    value = nested(DEPTH_MAX, array=array)
    text = json.dumps(value, separators=(",", ":"))
    assert decode_restricted(encode_restricted(value)) == value
    assert canonicalize_value(value) == text
    assert canonicalize_text(text) == (text, "jcs")
    deeper = nested(DEPTH_MAX + 1, array=array)
    text = json.dumps(deeper, separators=(",", ":"))
    assert canonicalize_text(text) == (text, "raw")
    for refuse in (encode_restricted, canonicalize_value):
        with pytest.raises(InputError):
            refuse(deeper)
    with pytest.raises(InputError):
        parse_json(text, "value")


@pytest.mark.parametrize("item", [[], {}, [[1]], {"a": {"b": []}}], ids=str)
def test_siblings_are_not_levels(item):
    text = json.dumps([item] * 1_000, separators=(",", ":"))
    assert canonicalize_text(text) == (text, "jcs")
    assert decode_restricted(text.encode()) == [item] * 1_000


def test_brackets_inside_strings_are_not_levels():
    text = json.dumps(['[{"\\' * 100])
    assert canonicalize_text(text) == (text, "jcs")


@given(json_values)
@settings(deadline=None, max_examples=500)
@example({"\U0001f600": 1, "\ufb33": 2, "\ue000": 3, "\u20ac": 4, "\r": 5, "1": 6})
@example([-0.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 333333333.33333329, 1e20, 0.000001])
def test_a_value_has_the_text_the_oracle_gives_it(value):
    assert canonicalize_value(value).encode() == rfc8785.dumps(value)


@given(json_values, st.booleans(), st.none() | st.integers(0, 2))
@settings(deadline=None, max_examples=300)
def test_text_of_any_spelling_becomes_the_text_the_oracle_gives(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert canonicalize_text(text) == (rfc8785.dumps(value).decode(), "jcs")


@given(st.integers())
@settings(deadline=None, max_examples=200)
@example(INTEGER_MAX)
@example(INTEGER_MAX + 1)
@example(-INTEGER_MAX)
@example(-INTEGER_MAX - 1)
def test_an_integer_is_kept_raw_exactly_where_the_oracle_refuses_it(value):
    try:
        expected = (rfc8785.dumps(value).decode(), "jcs")
    except rfc8785.IntegerDomainError:
        expected = (str(value), "raw")
    assert canonicalize_text(str(value)) == expected


NOT_JSON = [
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        INTEGER_MAX + 1,
        10**5000,
        "\ud800",
        {"\udfff": 1},
    ),
    *({1: 1}, {None: 1}, {True: 1}, {(1,): 1}, {10**5000: 1}, b"x", {1}, object()),
]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_a_value_that_has_no_canonical_text_is_an_input_error(value):
    for place in (value, [value], {"a": [value]}):
        with pytest.raises(InputError):
            canonicalize_value(place)


def test_a_value_that_holds_itself_is_an_input_error():
    loop = []
    loop.append({"a": loop})
    with pytest.raises(InputError):
        canonicalize_value(loop)


def test_a_number_of_a_float_subclass_is_written_as_the_number_it_is():
    class Printed(float):
        def __repr__(self):
            return f"Printed({float(self)})"

        def __abs__(self):
            return Printed(float.__abs__(self))

    assert canonicalize_value([Printed(0.7), Printed(-1e-7)]) == "[0.7,-1e-7]"


def test_a_refusal_names_the_place():
    with pytest.raises(InputError) as caught:
        canonicalize_value({"a": [1, {"b": float("nan")}]}, "outcome")
    assert caught.value.field == "outcome.a[1].b"
    assert caught.value.message.startswith("outcome.a[1].b: ")


@pytest.mark.parametrize("key", ["\ud800", "a\udfffb", "a\nb", "\x1b[2J", "\x7f", "\r"], ids=ascii)
def test_the_message_of_a_refusal_is_one_printable_line(key):
    with pytest.raises(InputError) as caught:
        canonicalize_value({key: object()})
    assert caught.value.message.isprintable()


RAW = {
    "integer_beyond": "[9007199254740992]",
    "integer_below": "[-9007199254740992]",
    "integer_huge": "1" * 5_000,
    "integer_huge_negative": "-" + "1" * 5_000,
    "float_beyond": '{"a":1e999}',
    "float_below": "-1E+400",
    "repeated_key": '{"a":1, "a":2}',
    "repeated_key_spelled_twice": '{"a":1,"\\u0061":2}',
    "repeated_key_inside": '[{"x":{"a":1,"b":2,"a":1}}]',
    "lone_surrogate": '"\\ud800"',
    "lone_surrogate_key": '{"\\udc00":1}',
    "too_deep_array": "[" * 65 + "]" * 65,
    "too_deep_object": '{"a":' * 65 + "1" + "}" * 65,
    "hostile_array": "[" * HOSTILE_DEPTH + "]" * HOSTILE_DEPTH,
    "hostile_object": '{"a":' * HOSTILE_DEPTH + "[]" + "}" * HOSTILE_DEPTH,
    "hostile_after_siblings": "[" + "[]," * HOSTILE_DEPTH + "[" * 9_000 + "]" * 9_001,
    "white_space_kept": ' {"a" : 1 ,\n"a" : 9007199254740993 }\t',
}


@pytest.mark.parametrize("text", RAW.values(), ids=RAW)
def test_json_that_the_standard_refuses_is_kept_as_it_came(text):
    assert canonicalize_text(text) == (text, "raw")


@pytest.mark.parametrize("text", RAW.values(), ids=RAW)
def test_json_that_the_standard_refuses_is_refused_in_evidence(text):
    with pytest.raises(InputError):
        decode_restricted(text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"\\u0000"', '"\\u0000"'),
        ("-0", "0"),
        ("-0.0", "0"),
        ("9007199254740993.0", "9007199254740992"),
        ("1e-999", "0"),
        ('"\\ud83d\\ude00"', '"\U0001f600"'),
        ('{"\\u0062":1,"a":2}', '{"a":2,"b":1}'),
        ("\t[ ]\r\n", "[]"),
    ],
)
def test_json_that_the_standard_takes_becomes_its_text(text, expected):
    assert canonicalize_text(text) == (expected, "jcs")


@given(token_soup)
@settings(deadline=None, max_examples=1000)
@example("\ufeff{}")
@example("[1}")
@example('{"a":1]')
@example('{"a"}')
@example('{"a":1,}')
@example("[,]")
@example("[1 2]")
@example("1 2")
@example("{1:2}")
@example('["\t"]')
@example("\u00a0[]")
@example("[NaN]")
@example("-Infinity")
@example('["\u0661"]\u0661')
def test_text_is_taken_exactly_where_the_standard_library_takes_it(text):
    assert (try_to(canonicalize_text, text) is None) is is_json(text)


@given(json_values.map(json.dumps), st.data())
@settings(deadline=None, max_examples=500)
def test_text_with_one_thing_changed_is_taken_exactly_where_the_standard_library_takes_it(
    text, data
):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 2, len(text))))
    changed = text[:start] + data.draw(tokens | st.just("")) + text[end:]
    assert (try_to(canonicalize_text, changed) is None) is is_json(changed)


@given(any_text)
@settings(deadline=None, max_examples=500)
def test_what_is_taken_is_either_canonical_or_as_it_came(text):
    try:
        taken = canonicalize_text(text)
    except AffidavitError:
        return
    if taken.form == "jcs":
        assert taken.text.encode() == rfc8785.dumps(json_loads(text))
    else:
        assert taken == (text, "raw")


@read_functions
@given(text=any_text)
@settings(deadline=None, max_examples=500)
def test_no_text_raises_anything_foreign(read, text):
    error = try_to(read, text)
    assert error is None or error.code


@pytest.mark.parametrize("read", [decode_restricted, decode_entry])
@given(data=st.binary() | any_text.map(to_bytes))
@settings(deadline=None, max_examples=500)
def test_no_bytes_raise_anything_foreign(read, data):
    error = try_to(read, data)
    assert error is None or error.code


HOSTILE = {
    "open_arrays": "[" * HOSTILE_DEPTH,
    "open_objects": '{"a":' * HOSTILE_DEPTH,
    "mixed": '[{"a":' * HOSTILE_DEPTH,
    "closed_first": "]" * HOSTILE_DEPTH + "[" * HOSTILE_DEPTH,
    "half_closed": "[" * HOSTILE_DEPTH + "]" * (HOSTILE_DEPTH - 1),
    "closed_too_often": "[" * HOSTILE_DEPTH + "]" * (HOSTILE_DEPTH + 1),
    "closed_wrongly": "[" * HOSTILE_DEPTH + "}" * HOSTILE_DEPTH,
    "lone_surrogates": "\udfff" * 1_000,
    "nan": "[NaN]",
    "infinity": '{"a":Infinity}',
    "negative_infinity": "-Infinity",
    "byte_order_mark": "\ufeff{}",
    "nothing": "",
}


@read_functions
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_an_input_error(read, text):
    with pytest.raises(InputError):
        read(text)


def test_text_that_has_no_bytes_is_an_input_error():
    for text in ('"\ud800"', '["\udfff"]', '{"\ud800":9007199254740993}'):
        with pytest.raises(InputError):
            canonicalize_text(text)


@pytest.mark.parametrize("text", RAW.values(), ids=RAW)
@pytest.mark.parametrize("key", ["at", "body", "kind", "src", "v"])
def test_an_entry_with_hostile_json_in_it_is_an_input_error(text, key):
    members = {"at": "1", "body": "{}", "kind": '"a.b"', "v": "1"}
    members["src"] = '{"auth":"none","client":null,"via":"cli"}'
    members[key] = text
    entry = "{" + ",".join(f'"{name}":{members[name]}' for name in sorted(members)) + "}"
    with pytest.raises(InputError):
        decode_entry(entry.encode())


@pytest.mark.parametrize("name", ["hostile_array", "hostile_object"])
@read_functions
def test_ten_thousand_levels_are_read_or_refused_in_time(read, name):
    started = time.process_time()
    try_to(read, RAW[name])
    assert time.process_time() - started < SECONDS_MAX


# Each would take many seconds, did any step of reading begin again at each character.
COSTLY = {
    "string_without_end": '"' + '\\"' * 20_000,
    "backslashes": '"' + "\\" * 100_001,
    "white_space_first": " " * 80_000 + "x",
    "white_space_after_nonsense": "x" + " " * 80_000 + "y",
    "white_space_between": "[" + " " * 80_000 + "1" + "\n" * 80_000 + "x",
    "digits": "1" * 500_000,
    "digits_of_a_fraction": "0." + "1" * 500_000,
    "digits_of_an_exponent": "1e" + "1" * 500_000,
    "minus_signs": "-" * 100_000,
    "quotes": '"' * 100_000,
    "keys_without_object": '"a":' * 50_000,
    "commas": "[" + "1," * 100_000,
    "long_key_over_many_items": '{"' + "a" * 500_000 + '":[' + "0," * 500_000 + "0]}",
}


@read_functions
@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY)
def test_costly_text_is_read_or_refused_in_linear_time(read, text):
    started = time.process_time()
    try_to(read, text)
    assert time.process_time() - started < SECONDS_MAX
