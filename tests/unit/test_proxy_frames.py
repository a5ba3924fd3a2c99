"""Tool calls among the bytes of a connection, however they are cut and whatever else is there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from affidavit.capture.proxy.frames import Conversation, Lines


def line(**said: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **said}).encode()


def asked(id_: Any, **params: Any) -> bytes:
    return line(id=id_, method="tools/call", params=params)


def test_lines_come_whole_however_they_are_cut() -> None:
    told = b"one\n\ntwo two\r\nthree"
    for size in range(1, len(told) + 1):
        lines = Lines()
        found = [
            whole for at in range(0, len(told), size) for whole in lines.take(told[at : at + size])
        ]
        assert found == [b"one", b"", b"two two\r"]


def test_a_line_without_end_is_passed_over_and_counted() -> None:
    lines = Lines(bytes_max=10)
    assert list(lines.take(b"x" * 8)) == []
    assert list(lines.take(b"x" * 8)) == []
    assert list(lines.take(b"x\nafter\n" + b"y" * 11 + b"\n" + b"z" * 10 + b"\n")) == [
        b"after",
        b"z" * 10,
    ]
    assert lines.passed_over == 2


def test_an_answer_belongs_to_its_question() -> None:
    talk = Conversation()
    first = list(talk.from_client(asked(1, name="a", _meta={"claudecode/toolUseId": "t1"})))
    second = list(talk.from_client(asked("1", name="b", arguments={"x": 1})))
    assert [one["id"] for one in (*first, *second)] == ["1", '"1"']
    assert (first[0]["tool_use_id"], first[0]["tool"], second[0]["arguments"]) == (
        "t1",
        "a",
        {"x": 1},
    )
    [told] = talk.from_server(line(id="1", result={"content": []}))
    assert (told["id"], told["result"]) == ('"1"', {"content": []})
    assert list(talk.from_server(line(id="1", result={}))) == []
    [told] = talk.from_server(line(id=1, error={"code": 1}))
    assert (told["tool_use_id"], told["error"]) == ("t1", {"code": 1})
    assert list(talk.left_open()) == []


def test_batches_and_questions_of_the_server() -> None:
    talk = Conversation()
    both = b"[" + asked(1, name="a") + b"," + asked(2, name="b") + b"]"
    assert [one["tool"] for one in talk.from_client(both)] == ["a", "b"]
    assert list(talk.from_server(line(id=1, method="sampling/createMessage", params={}))) == []
    assert [one["id"] for one in talk.from_server(b"[" + line(id=2, result=1) + b"]")] == ["2"]
    assert [one["id"] for one in talk.left_open()] == ["1"]
    assert list(talk.left_open()) == []


def test_who_talks_to_whom_and_our_own_server_is_left_out() -> None:
    talk = Conversation()
    hello = {"clientInfo": {"name": "c", "version": "2"}}
    list(talk.from_client(line(id=0, method="initialize", params=hello)))
    list(talk.from_server(line(id=0, result={"serverInfo": {"name": "shop"}})))
    [told] = talk.from_client(asked(1, name="a"))
    assert (told["client"], told["server"]) == ("c/2", "shop")
    talk = Conversation(may_be_ours=True)
    list(talk.from_client(line(id=0, method="initialize", params={"clientInfo": 7})))
    list(talk.from_server(line(id=0, result={"serverInfo": {"name": "affidavit"}})))
    assert list(talk.from_client(asked(1, name="a"))) == []


def test_a_server_that_only_calls_itself_ours_is_recorded() -> None:
    talk = Conversation()
    list(talk.from_client(line(id=0, method="initialize", params={})))
    list(talk.from_server(line(id=0, result={"serverInfo": {"name": "affidavit"}})))
    assert len(list(talk.from_client(asked(1, name="a")))) == 1


@pytest.mark.parametrize(
    "told",
    [
        asked(1, name="a").replace(b"tools/call", b"tools\\/call"),
        asked(1, name="a").replace(b"tools/call", b"t\\u006fols/call"),
        asked(1, name="a").replace(b'"id": 1', b'"id": 1.0'),
        asked(1, name="a").replace(b'"id": 1', b'"id": 1e0'),
        asked(1, name="a", arguments={"x": "?"}).replace(b"?", b"\xff"),
        b"\xef\xbb\xbf" + asked(1, name="a"),
    ],
)
def test_a_call_is_found_however_it_is_spelled(told: bytes) -> None:
    talk = Conversation()
    assert [one["tool"] for one in talk.from_client(told)] == ["a"]
    assert [one["result"] for one in talk.from_server(line(id=1, result=7))] == [7]
    assert talk.unread == 0


def test_an_id_that_is_used_again_is_another_call() -> None:
    talk = Conversation()
    names = []
    for _ in range(2):
        [first] = talk.from_client(asked(1, name="a"))
        [second] = talk.from_client(asked(1, name="b"))
        names += [first["nth"], second["nth"]]
        ends = [*talk.from_server(line(id=1, result=1)), *talk.from_server(line(id=1, result=2))]
        assert [one["nth"] for one in ends] == [first["nth"], second["nth"]]
    assert len(set(names)) == 4


@pytest.mark.parametrize("deep", [b"[" * 5_000 + b"]" * 5_000, b"9" * 5_000])
def test_a_call_that_cannot_be_read_is_counted(deep: bytes) -> None:
    talk = Conversation()
    told = asked(1, name="a", arguments="?").replace(b'"?"', deep)
    assert list(talk.from_client(told)) == []
    assert talk.unread == 1


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b"[" * 100_000 + b'"tools/call"',
        b'"tools/call"',
        b'[1, null, "tools/call"]',
        line(id=True, method="tools/call", params={}),
        line(id=None, method="tools/call", params={}),
        line(method="tools/call", params={}),
        line(id=1, method="tools/call", params=[]),
        line(id={"a": 1}, method="tools/call", params={}),
        line(id=1, method=["tools/call"], params={}),
    ],
)
def test_what_is_no_tool_call_is_passed_over(odd: bytes) -> None:
    talk = Conversation()
    assert list(talk.from_client(odd)) == []
    list(talk.from_client(asked(5, name="a")))
    assert list(talk.from_server(odd)) == []
    assert [one["id"] for one in talk.from_server(line(id=5, result=None))] == ["5"]
