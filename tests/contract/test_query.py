"""Raw queries: one statement that reads, within limits, and never a salt."""

import pytest

import affidavit
from affidavit.stores.sqlite import querying
from contract.calls import record, refused, start

ID = "0b0e8c1a-0000-4000-8000-000000000001"


@pytest.fixture
def filled(ledger):
    start(ledger, session_id="s")
    record(ledger, session_id="s", content="why")
    ledger.request_tool_call(ID, "c", vendor="v", tool_name="grep", arguments={"a": 1})
    return ledger


def test_rows_come_by_column(filled):
    found = filled.query("SELECT type, content FROM thought_records WHERE task_id = ?", ("t1",))
    assert found == [{"type": "plan", "content": "why"}]
    named = filled.query("SELECT tool_name AS t FROM tool_calls WHERE vendor = :v", {"v": "v"})
    assert named == [{"t": "grep"}]


def test_salts_read_as_null_wherever_they_are_asked_for(filled):
    (row,) = filled.query("SELECT * FROM tool_calls")
    salts = [name for name in row if name.endswith("salt")]
    assert salts
    assert {row[name] for name in salts} == {None}
    assert filled.query("SELECT count(intent_salt) AS n FROM sessions") == [{"n": 0}]
    assert filled.query("SELECT x.s FROM (SELECT intent_salt AS s FROM sessions) AS x") == [
        {"s": None}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM log",
        "INSERT INTO approvals DEFAULT VALUES",
        "UPDATE tool_calls SET vendor = 'x'",
        "CREATE TEMP TABLE t (a)",
        "DROP TABLE log",
        "PRAGMA query_only = OFF",
        "SELECT * FROM pragma_user_version",
        "ATTACH 'x.db' AS x",
        "BEGIN",
        "VACUUM INTO 'x.db'",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
        "SELECT no_such FROM log",
    ],
)
def test_everything_else_is_refused(filled, sql):
    size = len(filled)
    with refused("INVALID_PARAMS", "sql"):
        filled.query(sql)
    assert len(filled) == size


def test_rows_and_time_are_limited(filled, monkeypatch):
    forever = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    with refused("ERR_TOO_LARGE") as caught:
        filled.query(forever)
    assert caught.value.details["limit"] == "query_rows_max"
    monkeypatch.setattr(querying, "QUERY_S_MAX", 0.05)
    with refused("INVALID_PARAMS", "sql") as caught:
        filled.query(forever.replace("SELECT x FROM n", "SELECT max(x) FROM n"))
    assert "query_s_max" in str(caught.value)


def test_functions_for_times_and_flags(filled):
    assert filled.query(
        "SELECT format_timestamp(1776384000000001) AS t, to_int('7') AS i, to_bool('true') AS b,"
        " to_bool(0) AS c, format_timestamp(NULL) AS n"
    ) == [{"t": "2026-04-17T00:00:00.000001Z", "i": 7, "b": 1, "c": 0, "n": None}]


def test_a_ledger_in_memory_is_asked_too(open_ledger):
    import affidavit

    with affidavit.open(":memory:") as ledger:
        start(ledger, session_id="s")
        assert ledger.query("SELECT intent_salt FROM sessions") == [{"intent_salt": None}]
        assert len(ledger.list_sessions()) == 1
        record(ledger)


def test_what_cannot_be_read_as_text_is_not_quoted(ledger):
    with pytest.raises(affidavit.InputError) as caught:
        ledger.query("SELECT CAST(x'68756E746572FF' AS TEXT) AS found")
    assert "found" in str(caught.value)
    assert "hunter" not in str(caught.value)
