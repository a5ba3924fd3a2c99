"""Which parts of a tool call are stored: by path, in both policies; digests are of the whole."""

import hashlib

import pytest

import affidavit

ARGUMENTS = {"command": "ls", "opts": {"A": 1, "B": 2}, "files": [{"name": "a", "text": "x"}, 7]}
WHOLE = '{"command":"ls","files":[{"name":"a","text":"x"},7],"opts":{"A":1,"B":2}}'
DROPPED = {"command": "ls", "files": [{"name": "a"}, 7]}
CALL = "7f000000-0000-4000-8000-000000000001"


def stored(ledger, arguments=ARGUMENTS):
    ledger.request_tool_call(CALL, "c", None, "v", "read", arguments=arguments)
    return ledger.get_tool_call(CALL, "c")[0]


@pytest.mark.parametrize(
    ("policy", "paths", "kept"),
    [
        ("hash", "", None),
        ("hash", "arguments.command", {"command": "ls"}),
        ("hash", "arguments.opts.B", {"opts": {"B": 2}}),
        ("hash", "arguments.files.*.name", {"files": [{"name": "a"}, None]}),
        ("hash", "arguments.nothing", None),
        ("hash", "-arguments.command", None),
        ("hash", "outcome.command", None),
        ("keep", "", ARGUMENTS),
        ("keep", "-arguments.opts -arguments.files.*.text", DROPPED),
        ("keep", "-arguments.opts -arguments.files.*", {"command": "ls", "files": []}),
        ("keep", "-arguments.*", {}),
        ("keep", "arguments.command", ARGUMENTS),
    ],
)
def test_what_is_stored(open_ledger, policy, paths, kept):
    ledger = open_ledger(settings={"payloads": policy, "payload_paths": paths})
    found = stored(ledger)
    assert found.arguments == kept
    assert found.args_sha256 == hashlib.sha256(WHOLE.encode()).hexdigest()
    assert ledger.verify().valid


def test_json_that_cannot_be_read_exactly_is_kept_as_a_digest_alone(open_ledger):
    ledger = open_ledger(settings={"payloads": "keep", "payload_paths": "-arguments.a"})
    assert stored(ledger, '{"a": 1, "a": 2}').arguments is None


def test_the_same_request_again_changes_nothing(open_ledger):
    ledger = open_ledger(settings={"payloads": "keep", "payload_paths": "-arguments.opts"})
    stored(ledger)
    size = len(ledger)
    stored(ledger)
    assert len(ledger) == size


@pytest.mark.parametrize("paths", ["command", "arguments", "arguments..a", "arguments.a  b", " "])
def test_a_path_that_leads_nowhere_is_refused(ledger, paths):
    with pytest.raises(affidavit.InputError, match="payload_paths"):
        ledger.set(payload_paths=paths)
