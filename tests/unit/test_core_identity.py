"""Who signs for a log, and under which name, at every size."""

from affidavit.core.ed25519 import public_key
from affidavit.core.entry import Entry, Source
from affidavit.core.identity import Span, derive_identity
from affidavit.core.note import ED25519, VerifierKey

CREATED = Entry(0, "ledger.created", {"origin": "a.example"}, Source())


def key(number, name="a.example"):
    return VerifierKey(name, ED25519, public_key(bytes([number] * 32)))


def change(index, kind, **body):
    return index, Entry(index, kind, body, Source())


def test_a_log_without_keys_has_the_name_it_was_created_with():
    assert derive_identity(CREATED, []) == ("a.example", {})


def test_keys_sign_from_when_they_are_added_until_they_are_retired():
    changes = [
        change(1, "key.added", vkey=str(key(1))),
        change(2, "key.added", vkey=str(key(2))),
        change(3, "key.retired", vkey=str(key(1))),
        change(4, "key.retired", vkey=str(key(9))),
        change(5, "key.added", vkey=str(key(2))),
    ]
    found = derive_identity(CREATED, changes)
    assert found.spans == {key(1): Span(1, 3), key(2): Span(2)}
    assert found.keys == (key(2),)
    assert derive_identity(CREATED, changes[:2]).keys == (key(1), key(2))


def test_a_retired_key_does_not_come_back():
    changes = [
        change(1, "key.added", vkey=str(key(1))),
        change(2, "key.retired", vkey=str(key(1))),
        change(3, "key.added", vkey=str(key(1))),
    ]
    assert derive_identity(CREATED, changes).keys == ()


def test_another_name_has_keys_of_its_own():
    changes = [
        change(1, "key.added", vkey=str(key(1))),
        change(2, "key.added", vkey=str(key(2, "b.example"))),
        change(3, "origin.changed", origin="b.example"),
    ]
    assert derive_identity(CREATED, changes[:2]).keys == (key(1),)
    assert derive_identity(CREATED, changes) == ("b.example", {key(2, "b.example"): Span(2)})
