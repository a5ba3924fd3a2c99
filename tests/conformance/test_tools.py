"""What the tools must do, called by the official client."""

from typing import Any

import pytest

import affidavit
from affidavit.apps.mcp.service import TOOLS, Service
from affidavit.apps.mcp.tools import Registry
from contract.oracle import select
from surfaces.mcp_clients import call, client_of, data, error, run

SAID = {"type": "plan", "task_id": "t1", "agent_id": "a1", "content": "because"}
FIELDS = {"id", "type", "task_id", "agent_id", "content", "timestamp", "prev_hash", "hash"}


@pytest.fixture
def service(ledger):
    return Service(ledger)


def offered(service: Service) -> list[Any]:
    async def work() -> list[Any]:
        async with client_of(service) as client:
            return (await client.list_tools()).tools

    return run(work)


def test_the_record_tool_answers_in_its_envelope(service, ledger):
    answer = data(call(service, "thought_record", **SAID))
    assert answer.keys() >= FIELDS
    assert answer == ledger.get_thought(answer["id"]).to_dict()


def test_the_record_tool_refuses_bad_input_as_invalid_params(service, ledger):
    told = error(call(service, "thought_record", **{**SAID, "type": "bad"}))
    assert told["code"] == "INVALID_PARAMS"
    assert told["details"]["issues"][0]["path"] == "type"
    assert ledger.list_thoughts() == []


def test_the_list_tool_answers_in_its_envelope(service):
    assert data(call(service, "thought_record_list")) == {"records": []}


def test_the_list_tool_filters_by_task(service, ledger):
    for task in ("t1", "t2", "t1"):
        ledger.record_thought(**{**SAID, "task_id": task})
    records = data(call(service, "thought_record_list", task_id="t1"))["records"]
    assert [record["task_id"] for record in records] == ["t1", "t1"]


def test_both_record_tools_are_registered(service):
    assert {"thought_record", "thought_record_list"} <= {tool.name for tool in offered(service)}


@pytest.mark.parametrize("name", ["thought_record", "task_create"])
def test_a_tool_is_registered_once(service, name):
    registry = Registry(TOOLS)
    tool = registry.find(name)
    assert tool is not None
    with pytest.raises(ValueError, match=f"{name} is registered already"):
        registry.add(tool)


def test_the_record_tool_loses_no_field_and_adds_the_session(service, ledger):
    session = ledger.start_session(intent="x").session_id
    answer = data(call(service, "thought_record", **SAID, session_id=session))
    assert answer.keys() >= {*FIELDS, "session_id"}
    assert answer["session_id"] == session
    assert data(call(service, "thought_record", **SAID))["session_id"] is None


def test_the_five_task_tools_are_registered(service):
    wanted = {"task_create", "task_get", "task_update", "task_list", "task_next_actions"}
    assert wanted <= {tool.name for tool in offered(service)}


def test_the_six_tools_of_the_trail_and_the_proof_are_registered(service):
    wanted = {"audit_session_start", "thought_record", "audit_verify_chain", "audit_session_end"}
    wanted |= {"merkle_finalize", "merkle_root"}
    assert wanted <= {tool.name for tool in offered(service)}


def test_a_task_tool_tells_what_a_task_does_not_allow_inside_its_data(service, ledger):
    absent = data(call(service, "task_get", id="nowhere"))
    assert absent == {
        "ok": False,
        "error": {
            "code": "ERR_NOT_FOUND",
            "message": "Task not found: nowhere",
            "taskId": "nowhere",
        },
    }
    absent = data(call(service, "task_update", id="nowhere", patch={"title": "x"}))
    assert absent["error"]["message"] == "Task not found: nowhere (operation: update)"
    task = ledger.create_task(title="x").id
    refused = data(call(service, "task_update", id=task, patch={"status": "DONE"}))
    assert refused["error"] == {
        "code": "ERR_WRITEBACK_REQUIRED",
        "message": f"Writeback required for task {task}: missing thought_record",
        "missing_fields": ["thought_record"],
        "taskId": task,
    }
    ledger.record_thought(**{**SAID, "task_id": task})
    assert data(call(service, "task_update", id=task, patch={"status": "DONE"}))["status"] == "DONE"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("task_create", {}),
        ("task_get", {}),
        ("task_update", {"id": "x", "patch": {"status": "bad"}}),
        ("task_list", {"limit": 501}),
        ("task_next_actions", {"what": "ever"}),
    ],
)
def test_a_task_tool_refuses_bad_input_as_invalid_params(service, tool, given):
    assert error(call(service, tool, **given))["code"] == "INVALID_PARAMS"


def test_a_task_is_created_found_changed_and_listed_through_the_tools(service):
    task = data(call(service, "task_create", title="one"))
    assert data(call(service, "task_get", id=task["id"])) == task
    assert (
        data(call(service, "task_update", id=task["id"], patch={"title": "two"}))["title"] == "two"
    )
    assert data(call(service, "task_list", status="INIT"))["total_count"] == 1
    cancelled = data(call(service, "task_create", title="three", status="CANCELLED"))
    left = data(call(service, "task_next_actions"))
    assert cancelled["id"] not in [one["id"] for one in left["tasks"]]
    assert [one["id"] for one in left["tasks"]] == [task["id"]]


def test_every_call_that_reaches_the_server_leaves_an_event(service, ledger, path):
    call(service, "thought_record", **SAID)
    call(service, "thought_record", **{**SAID, "type": "bad"})
    call(service, "server_health")
    ledger.close()
    events = select(
        path, "SELECT kind, json_extract(body, '$.outcome') FROM audit_events WHERE log_index > 0"
    )
    assert events == [("call.finished", "ok"), ("call.failed", "INVALID_PARAMS")]
    with affidavit.open(path, readonly=True) as again:
        assert again.verify().checked["calls"] == 2
