"""The command line about turns, tool calls and proposals, as they are and as they were."""

NAME = "00000000-0000-4000-8000-000000000001"


def test_tasks_and_sessions_as_of_an_index(cli):
    task = cli("task", "create", "--title", "first", "--json").data["id"]
    cli("task", "update", task, "--title", "second")
    old = cli("task", "get", task, "--as-of-index", "1", "--json").data
    assert (old["title"], old["log_size"], old["settled"]) == ("first", 3, True)
    assert cli("task", "get", task, "--json").data["title"] == "second"
    listed = cli("task", "list", "--as-of-index", "0", "--json").data
    assert (listed["total_count"], listed["settled"]) == (0, True)
    session = cli("session", "start", "--intent", "x", "--json").data["session_id"]
    cli("session", "end", session)
    then = cli("session", "show", session, "--as-of-index", "3", "--json").data
    assert then["state"] == "open"
    assert cli("session", "list", "--as-of-index", "2", "--json").data["sessions"] == []


def test_a_moment_that_is_none_is_refused(cli):
    cli("init")
    for words in (["--as-of", "2026-04-17"], ["--as-of", "yesterday"]):
        assert cli("turn", "list", *words, "--json").json["error"]["code"] == "INVALID_PARAMS"
    assert cli("turn", "list", "--as-of", "NOW", "--as-of-index", "0").code == 2


def test_a_turn_is_shown_as_it_was(cli):
    for content in ("one", "two"):
        cli("turn", "add", NAME, "--message", NAME, "--kind", "user", content)
    assert "two" in cli("turn", "show", NAME).out
    assert cli("turn", "show", NAME, "--as-of-index", "1", "--json").data["content"] == "one"
    assert cli("turn", "retract", NAME, "--reason", "a slip").code == 0
    assert cli("turn", "show", NAME).code == 2
    assert cli("turn", "list").out == "No turns.\n"


def test_a_call_from_request_to_late_result(cli):
    asked = ["call", "request", NAME, "c1", "--vendor", "v", "--tool", "grep"]
    assert cli(*asked, "--arguments", '{"a": 1}').code == 0
    assert "grep" in cli("orphans", "--older-than", "0s").out
    assert cli("orphans", "--older-than", "0s", "--mark", "--json").data["marked"]
    assert cli("orphans", "--older-than", "0s").out == "No tool calls.\n"
    cli("call", "finish", NAME, "c1", "completed", "--outcome", '"done"')
    shown = cli("call", "history", NAME, "c1").out
    assert "late" in shown
    refused = cli("call", "finish", NAME, "c1", "completed", "--outcome", "2")
    assert refused.code == 2
    assert "cannot become completed" in refused.err


def test_usage_is_added_up(cli, path):
    import affidavit

    cli("init")
    with affidavit.open(path) as ledger:
        for number, model in enumerate(("m1", "m1", "m2")):
            turn = NAME[:-1] + str(number)
            usage = {"input_tokens": 10, "cost_microusd": number}
            ledger.upsert_turn(turn, NAME, "user", "x", model=model, usage=usage, occurred_at_ms=0)
        ledger.retract_turn(NAME[:-1] + "2")
        ledger.request_tool_call(NAME, "c", vendor="v", tool_name="t", arguments={}, model="m1")
        ledger.finish_tool_call(NAME, "c", "completed", usage={"input_tokens": 1})
        assert ledger.usage("day", until_ms=1)[0].key == "1970-01-01"
        assert ledger.usage("session")[0].key is None
    data = cli("usage", "--json").data
    assert data["usage"] == [{"key": "m1", "counts": {"cost_microusd": 1, "input_tokens": 21}}]
    assert "input_tokens" in cli("usage").out


def test_settled_says_so(cli):
    cli("init")
    assert cli("settled", "--as-of", "1", "--json").data == {"log_size": 1, "settled": True}
    assert "not settled" in cli("settled").out


def test_what_python_takes_the_command_line_takes_too(cli):
    said = ["--message", NAME, "--kind", "user", "x", "--usage", '{"tokens": 3}']
    turn = cli("turn", "add", NAME, *said, "--attributes", '{"a": 1}', "--json").data
    assert (turn["usage"], turn["attributes_json"]) == ({"tokens": 3}, '{"a":1}')
    asked = ["call", "request", NAME, "c", "--vendor", "v", "--tool", "t", "--arguments", "{}"]
    call = cli(*asked, "--attributes", "[2]", "--json").data["request"]
    assert call["attributes_json"] == "[2]"
    done = ["call", "finish", NAME, "c", "completed", "--usage"]
    for wrong in ("3", "{", '{"A": 1}', '{"a": -1}', '{"a": "x"}'):
        assert cli(*done, wrong).code == 2, wrong
    assert cli(*done, '{"tokens": 4}', "--json").data["usage"] == {"tokens": 4}
    cli("proposal", "create", NAME, "--diffs", "[]")
    cli("proposal", "decide", NAME, "approved", "--by", "me", "--decided-at-ms", "5")
    cli("proposal", "apply", NAME, "--at-ms", "6")
    shown = cli("proposal", "revert", NAME, "--at-ms", "7", "--json").data
    times = [shown[f"{what}_at_ms"] for what in ("decided", "applied", "reverted")]
    assert times == [5, 6, 7]
