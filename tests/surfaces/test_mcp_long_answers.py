"""Answers that stop at what a model's context can bear, and the way on that each names."""

from __future__ import annotations

import json

from affidavit.apps.mcp.envelope import RESULT_CHARACTERS_MAX
from affidavit.apps.mcp.resources import read_resource
from affidavit.apps.mcp.service import Service
from surfaces.mcp_clients import call, data

SAID = {"type": "plan", "task_id": "t1", "agent_id": "a1", "content": "because"}
UUID = "00000000-0000-4000-8000-000000000009"


def test_what_was_found_stops_where_an_answer_does(ledger):
    ledger.record_thoughts([{**SAID, "task_id": "t" * 500} for _ in range(120)])
    answer = call(Service(ledger, tools="all"), "trail_search", query="because", limit=500)
    found = data(answer)
    assert len(answer.content[-1].text) <= RESULT_CHARACTERS_MAX + 50
    assert (found["truncated"], found["next_after"]) == (True, None)
    assert found["hint"].startswith("Call trail_search again with more words")


def test_what_is_left_to_do_is_cut_with_a_way_on_that_exists(ledger):
    for _ in range(20):
        ledger.create_task(title="x" * 4_000)
    found = data(call(Service(ledger), "task_next_actions"))
    assert found["total_count"] == 20 > len(found["tasks"])
    assert found["hint"].startswith("Call task_list with a status")


def test_a_resource_of_many_short_records_says_that_it_is_cut(ledger):
    task = ledger.create_task(title="x")
    ledger.record_thoughts([{**SAID, "task_id": task.id, "content": "x"} for _ in range(200)])
    text = read_resource(ledger, Service(ledger).facts, f"affidavit://task/{task.id}")
    assert json.loads(text)["truncated"] is True


def test_the_versions_of_a_call_go_on_behind_the_last_one_seen(ledger):
    ledger.set(payloads="keep")
    called = {"request_id": UUID, "call_id": "c"}
    for number in range(5):
        given = {"text": f"{number}" * 20_000}
        ledger.request_tool_call(**called, vendor="v", tool_name="n", arguments=given)
    service, seen, after = Service(ledger, tools="all"), [], {}
    while True:
        found = data(call(service, "tool_call_history", **called, **after))
        seen += [one["index"] for one in found["versions"]]
        if "truncated" not in found:
            break
        after = {"after": found["next_after"]}
    assert seen == [one.index for one in ledger.tool_call_history(UUID, "c")]
