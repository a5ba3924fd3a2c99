"""Secrets go, harmless texts stay; hostile texts take time in proportion to their size."""

import time

import pytest

from affidavit.core.redact import RULES, redact_json, redact_text
from unit.redaction_corpus import developed, harmless, held_out

BYTES = 16 * 1024 * 1024
# Asked for is 0.95; none of these was ever missed, so a shape that is lost is a fault.
RECALL_MIN = 1.0


def missed(samples):
    return [text for text, secret in samples if secret in redact_text(text)[0]]


@pytest.mark.parametrize("samples", [developed, held_out])
def test_secrets_of_known_shapes_are_removed(samples):
    texts = samples()
    left = missed(texts)
    recall = 1 - len(left) / len(texts)
    print(f"{samples.__name__}: recall {recall:.2%} of {len(texts)}")
    assert recall >= RECALL_MIN, left


def test_harmless_texts_stay_as_they_are():
    texts = harmless()
    changed = [(text[:200], new[:200]) for text in texts if (new := redact_text(text)[0]) != text]
    print(f"false positives: {len(changed)} of {len(texts)} harmless texts")
    assert changed == []


def test_what_is_redacted_is_not_redacted_again():
    for text, _ in developed():
        once, count = redact_text(text)
        assert count >= 1 or once == text
        assert redact_text(once) == (once, 0)


def test_values_go_by_the_names_of_their_keys():
    given = {
        "headers": {"Authorization": "Bearer x", "accept": "json"},
        "apiKey": "short",
        "nested": [{"client-secret": {"a": 1}}, "postgres://me:pw@host/db"],
        "env": {"HOME": "/somewhere", "NAME": "value", "EMPTY": ""},
        "max_tokens": 100,
        "token_type": "bearer",
        "password": 1234,
        "token": None,
        "environment": "production",
    }
    found, count = redact_json(given)
    assert found == {
        "headers": {"Authorization": "[redacted:key]", "accept": "json"},
        "apiKey": "[redacted:key]",
        "nested": [{"client-secret": "[redacted:key]"}, "postgres://me:[redacted:url]@host/db"],
        "env": {"HOME": "/somewhere", "NAME": "[redacted:env]", "EMPTY": ""},
        "max_tokens": 100,
        "token_type": "bearer",
        "password": "[redacted:key]",
        "token": None,
        "environment": "production",
    }
    assert count == 6
    assert redact_json(found) == (found, 0)


def test_an_environment_may_be_a_list():
    assert redact_json({"Env": ["A=b", "PATH=/bin", "C"]}) == (
        {"Env": ["A=[redacted:env]", "PATH=/bin", "C"]},
        1,
    )


@pytest.mark.parametrize("kept", [None, True, 7, "plain", [], {}])
def test_other_values_stay(kept):
    assert redact_json(kept) == (kept, 0)


# Each leads to a value again and again: many are none, in many ways, and many are secrets.
HOSTILE = [
    *("token:", "pass:", "pwd:", "pwd=%", "pwd=a-", "pwd=abcd,", "pwd=abc1,", "1_token:", "pwd:1"),
    *("--usera:%", "x-token:a-", "x-key:%", "x-key:a1aaaa ", "authorization:*", "cookie: a-="),
    *("-u a:a1c ", "--pwd ab1\n", "pwd='abcd'", "secret: '", "secret='pwd: ", "://a:", "://a:b@"),
    *("bearer a1aaaaaaaaaa ", "a_", "sk-", "hooks.slack.com/services/"),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----------END-----"),
]


def spent_s(unit, size):
    text = (unit * (size // len(unit) + 1))[:size]
    start = time.process_time()
    redact_text(text)
    return time.process_time() - start


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_takes_time_in_proportion_to_its_size(unit):
    """A sixty-fourth of the largest text; twice as much may take three times as long, not four."""
    small = spent_s(unit, BYTES // 128)
    large = spent_s(unit, BYTES // 64)
    assert large < max(3.5 * small, 0.05)
    assert large * 64 < 8  # measured: 4.4 s at most


def test_a_text_of_the_largest_size_is_done_in_seconds():
    start = time.process_time()
    redact_text("password=" + "x" * (BYTES - 9))
    redact_text("word " * (BYTES // 5))
    assert time.process_time() - start < 8


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("hooks.slack.com/services/" + "a1" * 20 + "hooks.slack.com/services/" + "b2" * 20, "b2"),
        ("password:abcd1TOKEN='hunter22x'", "hunter22x"),
        ("secret=" + "a1" * 70 + "_PASSWORD='hunter22x'", "hunter22x"),
        ("pwd=nothing.at.all secret=hunter22x", "hunter22x"),
        ("token: the_password=hunter22x", "hunter22x"),
        ("--password --github-enterprise-access-token hunter22x", "hunter22x"),
        ("password: correct-horse-battery-staple-and-many-more-words-behind-7", "correct-horse"),
        ("Cookie: consent=" + "abc.def." * 200 + "; session=hunter22x", "hunter22x"),
        ('Cookie: v=1; JSESSIONID="hunter22x"; a=b', "hunter22x"),
        ("Cookie: consent=" + "abc.def." * 200 + '; token="hunter22x"', "hunter22x"),
        ('curl -H "Cookie: sid=abc=" -u "me:hunter22x"', "hunter22x"),
        ("client secret is abc8Q~abcd.efgh~ijkl-mn_opq.rstu~vwxyz12", "ijkl"),
    ],
)
def test_a_secret_is_found_behind_another_and_behind_what_is_none(text, left):
    assert left not in redact_text(text)[0]


def test_rules_have_a_version():
    assert RULES.isdigit()
