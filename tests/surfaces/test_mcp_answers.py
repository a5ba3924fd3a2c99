"""What the tools tell a model and answer: schemas, sizes, refusals, retries, modes, the prompt."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

import affidavit
from affidavit.apps import places
from affidavit.apps.mcp.envelope import RESULT_CHARACTERS_MAX
from affidavit.apps.mcp.schemas import input_schema, output_schema
from affidavit.apps.mcp.service import TOOLS, Peer, Service
from affidavit.apps.mcp.texts import INSTRUCTIONS, PROMPT
from affidavit.apps.mcp.tools import MODES
from affidavit.apps.signing_files import GuardFolder
from surfaces.mcp_clients import ERAS, call, client_of, data, error, run

UUID = "00000000-0000-4000-8000-000000000009"
SAID = {"type": "plan", "task_id": "t1", "agent_id": "a1", "content": "because"}
CORE = [
    *("task_create", "task_get", "task_update", "task_list", "task_next_actions"),
    *("thought_record", "thought_record_list", "audit_session_start", "audit_verify_chain"),
    *("audit_session_end", "merkle_finalize", "merkle_root", "server_health"),
]


def told(tools: Any) -> int:
    """How much of these tools a model reads."""
    shown = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": input_schema(tool.input),
        }
        for tool in tools
    ]
    return len(json.dumps(shown, separators=(",", ":")).encode()) + 40 * len(shown)


def test_the_default_set_is_the_core():
    assert sorted(tool.name for tool in TOOLS if tool.core) == sorted(CORE)


def test_what_a_model_reads_is_short():
    assert told([tool for tool in TOOLS if tool.core]) < 8_000
    assert told(TOOLS) < 24_000
    assert len(INSTRUCTIONS.encode()) < 1_500
    first = INSTRUCTIONS.encode()[:300].decode()
    assert "thought_record" in first
    assert "." in first[200:]  # the last sentence of the part that stands alone is a whole one


def test_every_tool_says_when_to_call_it():
    for tool in TOOLS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", tool.name)
        assert tool.title
        assert tool.description.startswith("Call this ")


def test_unknown_arguments_are_refused_by_every_tool(ledger):
    service = Service(ledger, tools="all")
    for tool in service.tools:
        assert input_schema(tool.input)["additionalProperties"] is False
        answer = service.call(tool, {"surprise": 1})
        assert answer.structure["error"]["code"] == "INVALID_PARAMS", tool.name


DEEP: Any = {}
for _ in range(200):
    DEEP = {"d": DEEP}
ODD = [
    *(None, True, 0, -1, 2**70, 1.5, float("inf"), "", "\x00", "\ud800", "a\nb", [], {}, ["x"]),
    *("x" * 600, "x" * 70_000, "🦉" * 200, DEEP),
]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_odd_arguments_are_answered_in_shape(tool):
    """Whatever is sent: JSON of the schema, short, and never a fault of the server."""
    shape = output_schema(tool.answer, refuses_inside=tool.refuses_inside)
    checker = jsonschema.Draft202012Validator(shape)
    good = {**SAID, "id": "x", "intent": "i", "title": "t", "session_id": "s", "to": "DONE"}
    schema = input_schema(tool.input)
    needed = {name: good.get(name, {}) for name in schema.get("required", ())}
    with affidavit.open(":memory:") as ledger:
        service = Service(ledger, tools="all", bind_auto=True)
        for name in (*schema["properties"], "surprise", "\ud800", "y" * 100_000):
            for odd in ODD:
                answer = service.call(tool, {**needed, name: odd}, client=("c\x00", "1"))
                checker.validate(json.loads(json.dumps(answer.structure)))
                said = json.dumps([answer.structure, *answer.texts], ensure_ascii=False)
                assert len(said.encode()) < 400_000
                assert "HANDLER_ERROR" not in said
        for odd in ODD:
            answer = service.call(tool, needed, idempotency_key=odd)
            assert "HANDLER_ERROR" not in json.dumps(answer.structure)
        assert ledger.verify().valid


def observed() -> dict[str, list[dict[str, Any]]]:
    """Calls of the tools about turns, tool calls and proposals, in an order that works."""
    name = "00000000-0000-4000-8000-000000000001"
    asked, one = {"request_id": name, "call_id": "c1"}, {"request_id": name}
    turn = {"id": name, "message_id": name, "kind": "user", "content": "hello"}
    return {
        "turn_upsert": [{**turn, "attributes": {"a": [1.5]}}, {**turn, "kind": "x"}],
        "turn_get": [{"id": name}, {"id": name, "as_of": 1}, {"id": "x"}],
        "turn_list": [{}, {"as_of": "2026-01-01"}],
        "turn_retract": [{"id": name}, {"id": name[:-1] + "2"}],
        "tool_call_request": [{**asked, "vendor": "v", "tool_name": "t", "arguments": {}}, asked],
        "tool_call_finish": [
            {**asked, "status": "completed", "outcome": [1]},
            {**asked, "call_id": "c2", "status": "completed"},
        ],
        "tool_call_get": [asked, {**asked, "as_of_index": 0}, {}],
        "tool_call_list": [{}, {"status": "completed", "as_of": "NOW"}],
        "tool_call_history": [asked],
        "proposal_create": [{**one, "diffs": [], "confidence": 0.5}, {**one, "diffs": {}}],
        "proposal_decide": [{**one, "decision": "approved", "by": "x"}, one],
        "proposal_apply": [{**one, "commit_hash": "abc"}, {**one, "commit_hash": "d"}],
        "proposal_revert": [one, {}],
        "proposal_get": [one, {**one, "as_of": 1}],
        "proposal_list": [{}, {"status": "reverted"}],
    }


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_answers_as_its_schema_says(ledger, era):
    """The client checks each result, carried out or refused, against the tool's output schema."""
    service = Service(ledger, tools="all")
    session = ledger.start_session(intent="x", proof_grade=True, task_id="t1").session_id
    task = ledger.create_task(title="x").id
    record = ledger.record_thought(**SAID, session_id=session).id
    given: dict[str, list[dict[str, Any]]] = {
        "task_create": [{"title": "one", "priority": "high"}, {"title": "x", "status": "DONE"}],
        "task_get": [{"id": task}, {"id": "nowhere"}],
        "task_update": [{"id": task, "patch": {"title": "y"}}, {"id": "nowhere", "patch": {}}],
        "task_list": [{}, {"project_id": None, "limit": 1}],
        "task_next_actions": [{}],
        "task_transition": [{"id": task, "to": "GATHER"}, {"id": task, "to": "DONE"}],
        "task_delete": [{"id": task}, {"id": task}],
        "thought_record": [SAID, {**SAID, "session_id": "nowhere"}],
        "thought_record_list": [{}, {"after": "nowhere"}],
        "thought_get": [{"id": record}, {"id": "nowhere"}],
        "proof_get": [{"id": record}, {"id": "nowhere"}],
        "session_list": [{}, {"after": "nowhere"}],
        "trail_search": [{"query": "because"}, {"query": "!"}],
        "session_get": [{"session_id": session}, {"session_id": "nowhere"}],
        "audit_session_start": [{"intent": "y"}, {"intent": "y", "session_id": session}],
        "audit_verify_chain": [{}, {"task_id": "t1", "session_id": session}],
        "merkle_finalize": [{"session_id": session}, {"session_id": "nowhere"}],
        "merkle_root": [{"session_id": session}, {"session_id": "nowhere"}],
        "audit_session_end": [{"session_id": session}, {"session_id": "nowhere"}],
        "server_health": [{}],
        "server_ping": [{}],
        **observed(),
    }

    async def work() -> None:
        async with client_of(service, era) as client:
            for name, calls in given.items():
                for arguments in [*calls, {"surprise": 1}]:
                    answer = await client.call_tool(name, arguments)
                    ok = answer.structured_content["ok"]
                    assert answer.is_error is not ok
                    texts = [part.text for part in answer.content]
                    assert json.loads(texts[-1]) == answer.structured_content
                    refused = not ok or answer.structured_content["data"].get("ok") is False
                    assert len(texts) == (2 if refused else 1)
                    assert texts[0].startswith(f"{name} was refused: ") is refused

    assert list(given) != []
    assert set(given) == {tool.name for tool in TOOLS}
    run(work)


@pytest.mark.parametrize(("name", "told"), [("erase", "unknown"), ("task_delete", "task_delete")])
def test_a_tool_that_is_not_offered_is_a_fault_of_the_call(ledger, name, told):
    with pytest.raises(BaseException) as caught:
        call(Service(ledger), name)
    found = caught.value
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, MCPError)
    assert "thought_record" in str(found)
    entry = ledger.list_entries()[-1]
    assert (entry.kind, entry.body["tool"], entry.body["outcome"]) == (
        "call.failed",
        told,
        "INVALID_PARAMS",
    )


@pytest.mark.parametrize(
    ("tool", "given", "then"),
    [
        ("merkle_root", {"session_id": "s1"}, 'Call merkle_finalize {"session_id": "s1"}'),
        ("merkle_finalize", {"session_id": "s1"}, 'Call thought_record {"type": "reflection"'),
        ("thought_record", {**SAID, "session_id": "s2"}, '"continues": "s2"'),
        ("thought_record", {**SAID, "session_id": "nowhere"}, "Call audit_session_start {"),
        ("thought_record", {**SAID, "type": "x"}, "One of plan, analysis, decision, reflection."),
        ("audit_session_start", {"intent": "x", "session_id": "s1"}, 'start {"intent": "x"}'),
        ("audit_session_start", {"intent": "x", "continues": "s1"}, "Call audit_session_end {"),
        ("task_get", {"id": "nowhere"}, "Call task_list {"),
        ("task_create", {"title": "x", "status": "DONE"}, 'Call task_create {"title": "x"}, '),
        ("task_create", {"title": ""}, "Correct title, then call task_create again."),
        ("task_update", {"id": "x", "patch": {"status": "x"}}, "One of INIT, GATHER, "),
        ("task_update", {"id": "x", "patch": {"x": 1}}, "patch.x: is not an argument of this"),
        ("merkle_finalize", {"session_id": "nowhere"}, "Call audit_verify_chain {}, whose"),
        ("audit_session_start", {"intent": "x", "continues": "no"}, 'start {"intent": "x"}'),
        ("task_transition", {"id": "over", "to": "PLAN"}, 'call task_create {"title": '),
        (
            "tool_call_finish",
            {"request_id": UUID, "call_id": "c", "status": "completed"},
            "Call tool_call_request {",
        ),
        (
            "proposal_apply",
            {"request_id": UUID},
            "Call proposal_create {",
        ),
        ("turn_retract", {"id": UUID}, "Call turn_list {"),
    ],
)
def test_a_refusal_says_the_next_call_in_plain_words(ledger, tool, given, then):
    ledger.start_session(intent="x", session_id="s1", proof_grade=True)
    ledger.start_session(intent="x", session_id="s2")
    over = ledger.create_task(title="x", status="CANCELLED").id
    given = {name: over if item == "over" else item for name, item in given.items()}
    ledger.record_thought(**SAID, session_id="s1")
    ledger.end_session("s2")
    plain = call(Service(ledger, tools="all"), tool, **given).content[0].text
    assert plain.startswith(f"{tool} was refused: ")
    assert then in plain


def test_a_long_content_is_named_by_its_size_in_the_text(ledger):
    answer = call(Service(ledger), "thought_record", **{**SAID, "content": "x" * 501})
    assert data(answer)["content"] == "x" * 501
    assert '"content":"(501 characters)"' in answer.content[0].text
    answer = call(Service(ledger), "thought_record", **{**SAID, "content": "x" * 500})
    assert "x" * 500 in answer.content[0].text


def test_a_long_list_stops_and_says_how_to_go_on(ledger):
    ledger.record_thoughts([{**SAID, "content": f"{n} " + "ü" * 400} for n in range(300)])
    service, seen, after = Service(ledger), [], {}
    while True:
        answer = call(service, "thought_record_list", **after)
        found = data(answer)
        assert len(json.dumps(found, ensure_ascii=False)) <= RESULT_CHARACTERS_MAX * 1.05
        assert len(answer.content[-1].text) <= RESULT_CHARACTERS_MAX + 50
        seen += found["records"]
        if "truncated" not in found:
            break
        assert found["next_after"] == found["records"][-1]["id"]
        assert f"after={found['next_after']!r}" in found["hint"]
        after = {"after": found["next_after"]}
    assert seen == [one.to_dict() for one in ledger.list_thoughts()]


@pytest.mark.parametrize("character", ["x", '"', "\u0001", "🦉"])
def test_one_long_text_is_cut_and_says_so(ledger, character):
    answer = call(Service(ledger), "thought_record", **{**SAID, "content": character * 90_000})
    found = data(answer)
    assert found["truncated"] is True
    assert "content has 90,000 characters" in found["hint"]
    assert character * 90_000 == ledger.get_thought(found["id"]).content
    assert found["content"].strip(character) == ""
    shown = json.dumps(answer.structured_content, ensure_ascii=False, separators=(",", ":"))
    assert RESULT_CHARACTERS_MAX * 0.8 < len(shown) <= RESULT_CHARACTERS_MAX + 50


def test_many_chains_are_cut_and_the_verdict_stays(ledger):
    ledger.record_thoughts([{**SAID, "task_id": f"task number {n}"} for n in range(1_500)])
    found = data(call(Service(ledger), "audit_verify_chain"))
    assert found["truncated"] is True
    assert (found["valid"], found["record_count"]) == (True, 1_500)


def test_a_retry_with_its_key_gives_the_first_answer(ledger):
    service = Service(ledger)

    async def work() -> list[Any]:
        async with client_of(service) as client:
            meta = {"affidavit/idempotency-key": "k1"}
            return [await client.call_tool("thought_record", SAID, meta=meta) for _ in "12"] + [
                await client.call_tool("thought_record", {**SAID, "content": "x"}, meta=meta)
            ]

    first, again, other = run(work)
    assert data(again) == data(first)
    assert error(other)["code"] == "ERR_IDEMPOTENCY_MISMATCH"
    assert len(ledger.list_thoughts()) == 1


def test_bind_auto_fills_in_the_client_and_its_session(ledger):
    service, peer, client = Service(ledger, bind_auto=True), Peer(), ("claude", "2")

    def ask(name: str, **given: Any) -> Any:
        tool = service.tools.find(name)
        assert tool is not None
        return service.call(tool, given, client=client, peer=peer).structure["data"]

    said = {"type": "reflection", "task_id": "t", "content": "x"}
    assert ask("thought_record", **said)["session_id"] is None
    started = ask("audit_session_start", intent="x")
    assert started["caller"] == "claude/2"
    shown = ask("thought_record", **said)
    assert (shown["agent_id"], shown["session_id"]) == ("claude", started["session_id"])
    assert ask("thought_record", **said, agent_id="other")["agent_id"] == "other"
    ask("audit_session_end", session_id=ledger.start_session(intent="another").session_id)
    assert ask("merkle_finalize")["session_id"] == started["session_id"]
    assert ask("audit_session_end")["session_id"] == started["session_id"]
    assert ask("thought_record", **said)["session_id"] is None


def test_without_bind_auto_nothing_is_filled_in(ledger):
    service = Service(ledger)
    data(call(service, "audit_session_start", intent="x"))
    said = {name: SAID[name] for name in ("type", "task_id", "content")}
    assert error(call(service, "thought_record", **said))["code"] == "INVALID_PARAMS"
    assert data(call(service, "thought_record", **SAID))["session_id"] is None


def test_no_writing_tool_is_reachable_in_readonly(ledger, path):
    ledger.record_thought(**SAID)
    ledger.close()
    with affidavit.open(path, readonly=True) as reading:
        service = Service(reading, mode="readonly", tools="all")
        assert [tool.name for tool in service.tools if not tool.reads] == []
        assert set(service.tools.names) == {tool.name for tool in TOOLS if tool.only_reads}
        assert "proof_get" not in service.tools.names  # it signs what no checkpoint covers yet
        assert data(call(service, "thought_record_list"))["records"]
        health = data(call(service, "server_health"))
        assert (health["status"], health["mode"]) == ("degraded", "readonly")


def test_minimal_is_ping_and_health_and_records_no_call(ledger):
    before = len(ledger)
    service = Service(ledger, mode="minimal")
    assert service.tools.names == ["server_health", "server_ping"]
    assert data(call(service, "server_ping")) == {"pong": True}
    assert data(call(service, "server_health"))["mode"] in MODES
    assert len(ledger) == before


def test_health_is_ok_only_where_a_write_would_succeed(ledger, path, monkeypatch):
    service = Service(ledger)
    assert data(call(service, "server_health"))["status"] == "ok"
    monkeypatch.setattr("affidavit.apps.mcp.health._FULL_BYTES", 2**62)
    full = data(call(service, "server_health"))
    assert (full["status"], full["reasons"]) == ("failing", ["the disk is full"])
    ledger.close()
    closed = data(call(service, "server_health"))
    assert closed["status"] == "failing"
    assert "the ledger is closed" in closed["reasons"][0]


def test_health_waits_for_nobody_who_signs_and_leaves_no_trace(ledger, path, monkeypatch, tmp_path):
    size = ledger.checkpoint().size
    with GuardFolder(places.state_folder).hold(ledger.checkpoint().origin):
        found = data(call(Service(ledger), "server_health"))
    assert (found["status"], found["last_checkpoint"]) == ("ok", size)
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "elsewhere"))
    with affidavit.open(path, readonly=True) as reading:
        assert data(call(Service(reading, mode="readonly"), "server_health"))["mode"] == "readonly"
    assert not (tmp_path / "elsewhere").exists()


def test_a_ledger_replaced_under_the_server_is_for_a_person_to_mend(tmp_path):
    path = str(tmp_path / "replaced.db")
    with affidavit.open(path) as replaced:
        os.rename(path, f"{path}.old")
        refused = call(Service(replaced), "thought_record", **SAID)
        assert error(refused)["code"] == "ERR_STORE_UNAVAILABLE"
        assert "Tell the person, and call server_health {}" in refused.content[0].text
        assert data(call(Service(replaced), "server_health"))["status"] == "failing"


def test_a_fault_of_the_server_is_told_without_its_trace(ledger, monkeypatch, caplog):
    service = Service(ledger)
    tool = service.tools.find("task_next_actions")
    assert tool is not None

    def burst(*_: Any) -> None:
        raise RuntimeError("secret inside")

    answer = service.call(tool._replace(run=burst), {})
    assert answer.structure["error"]["code"] == "HANDLER_ERROR"
    assert "secret inside" not in json.dumps(answer.structure) + "".join(answer.texts)
    assert "secret inside" in caplog.text


def test_a_client_that_follows_only_the_prompt_makes_a_proof(ledger):
    service = Service(ledger)

    async def work() -> list[Any]:
        async with client_of(service) as client:
            prompt = await client.get_prompt(PROMPT, {"title": "Ship it", "agent_id": "ana"})
            text, known, answers = prompt.messages[0].content.text, {}, []
            for line in re.findall(r"^\d+\. (\w+) (\{.*\})$", text, re.MULTILINE):
                words = line[1]
                for name, value in known.items():
                    words = words.replace(name, value)
                answer = data(await client.call_tool(line[0], json.loads(words)))
                answers.append((line[0], answer))
                if line[0] == "task_create":
                    known["<task id>"] = answer["id"]
                elif line[0] == "audit_session_start":
                    known["<session id>"] = answer["session_id"]
            return answers

    answers = run(work)
    made = [name for name, _ in answers]
    wanted = ["audit_session_start", "thought_record", "audit_verify_chain", "thought_record"]
    wanted += ["merkle_finalize", "merkle_root", "audit_session_end"]
    steps = iter(made)
    assert all(name in steps for name in wanted)
    assert dict(answers)["audit_verify_chain"]["valid"] is True
    assert dict(answers)["merkle_root"]["root"] == dict(answers)["merkle_finalize"]["root"]
    assert ledger.verify().valid


@pytest.mark.parametrize("era", ERAS)
def test_resources_show_sessions_tasks_and_health(ledger, era):
    session = ledger.start_session(intent="x", session_id="s/1").session_id
    task = ledger.create_task(title="a task").id
    ledger.record_thought(**{**SAID, "task_id": task}, session_id=session)

    async def work() -> None:
        async with client_of(Service(ledger), era) as client:
            for uri, key in (
                ("affidavit://session/s%2F1", "intent"),
                (f"affidavit://task/{task}", "title"),
                ("affidavit://health", "status"),
            ):
                [shown] = (await client.read_resource(uri)).contents
                found = json.loads(shown.text)
                assert found[key] in ("x", "a task", "ok")
                assert "status" in found or len(found["records"]) == 1
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource("affidavit://session/nowhere")

    run(work)


def test_reads_leave_their_entries_unless_the_setting_says_otherwise(ledger):
    service = Service(ledger)

    def calls() -> int:
        ledger._context.store.flush()
        return int(ledger.verify().checked["calls"])

    call(service, "thought_record_list")
    assert calls() == 1
    ledger.set(audit_reads=False)
    call(service, "thought_record_list")
    call(service, "task_get", id="nowhere")
    assert calls() == 1
    call(service, "thought_record", **SAID)
    assert calls() == 2


def test_a_long_text_inside_an_answer_is_cut_and_lists_go_on_by_index(ledger):
    name = "00000000-0000-4000-8000-000000000001"
    for number in range(3):
        ledger.upsert_turn(name[:-1] + str(number), name, "user", "x" * 50_000)
    ledger.upsert_turn(name[:-1] + "5", name, "user", "y" * 100_000)
    found = data(call(Service(ledger, tools="all"), "turn_list"))
    assert found["truncated"]
    assert found["next_after"] == found["turns"][-1]["index"]
    one = data(call(Service(ledger, tools="all"), "turn_get", id=name[:-1] + "5"))
    assert one["truncated"]
    assert len(json.dumps(one)) <= RESULT_CHARACTERS_MAX
    assert one["turn"]["content"].startswith("yyy")
    assert (one["log_size"], one["settled"]) == (len(ledger), False)


def test_tasks_and_sessions_as_they_were(ledger):
    task = ledger.create_task(title="first")
    ledger.update_task(task.id, title="second")
    session = ledger.start_session(intent="x").session_id
    ledger.end_session(session)
    service = Service(ledger, tools="all")
    was = data(call(service, "task_get", id=task.id, as_of_index=1))
    assert (was["title"], was["log_size"], was["settled"]) == ("first", 5, True)
    assert "settled" not in data(call(service, "task_get", id=task.id))
    assert data(call(service, "task_list", as_of_index=0))["total_count"] == 0
    assert data(call(service, "session_get", session_id=session, as_of_index=3))["state"] == "open"
    listed = data(call(service, "session_list", as_of_index=2))
    assert (listed["sessions"], listed["settled"]) == ([], True)
