"""Callers' JSON: its RFC 8785 text and digest, from a Python value and from text alike."""

import json
from pathlib import Path

import pytest

from affidavit.core.canonical import canonicalize_text, canonicalize_value, hex_digest

DATA = Path(__file__).parent / "data" / "affidavit-v1"
CASES = json.loads((DATA / "args.json").read_text(encoding="utf-8"))
IDS = [case["jcs"][:20] for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_value_has_the_expected_text_and_digest(case):
    text = canonicalize_value(case["arguments"])
    assert text == case["jcs"]
    assert hex_digest(text.encode()) == case["args_sha256"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_json_text_of_any_spelling_has_the_expected_text_and_digest(case, indent):
    result = canonicalize_text(json.dumps(case["arguments"], indent=indent))
    assert result == (case["jcs"], "jcs")
    assert hex_digest(result.text.encode()) == case["args_sha256"]
