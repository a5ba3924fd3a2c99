"""The rows of the views, each a pure function of its entry, its payloads and the version before."""

import pytest

from affidavit.core.entry import Entry, Source
from affidavit.core.kinds import PAYLOAD_FIELDS
from affidavit.core.views import LINKS, TABLES, VIEW_OF_KIND, payload_columns
from affidavit.core.views.calls import CallRow, call_row
from affidavit.core.views.payload import NO_PAYLOAD, Payload
from affidavit.core.views.sessions import SealRow, SessionRow, seal_row, session_row
from affidavit.core.views.settings import SettingRow, setting_json, setting_row
from affidavit.core.views.signing import KeyRow, OriginRow, key_row, origin_row
from affidavit.core.views.tasks import TaskRow, attempt_after, task_row
from affidavit.core.views.thoughts import ThoughtRow, thought_row

AT = 1_776_384_000_000_000
TIME = "2026-04-17T00:00:00.000Z"
LATER = AT + 1_500_999
LATER_TIME = "2026-04-17T00:00:01.500Z"
COMMITTED = {"bytes": 1, "commit": "c" * 64}
TITLE = Payload("Choose an index", b"t" * 32)
DESCRIPTION = Payload("Measure both", b"d" * 32)
REASON = Payload("It is slow", b"r" * 32)

THOUGHT = {
    "agent_id": "agent-1",
    "chain_hash": "1" * 64,
    "content_hash": "2" * 64,
    "hash": "3" * 64,
    "id": "r1",
    "parent_chain_hash": "4" * 64,
    "prev_hash": "5" * 64,
    "session_id": "s1",
    "session_seq": 0,
    "task_id": "t1",
    "timestamp": "2020-01-01T00:00:00+01:00",
    "type": "decision",
}
UNBOUND = dict.fromkeys(
    ("chain_hash", "content_hash", "parent_chain_hash", "session_id", "session_seq")
)
SESSION = {
    "caller": "agent-1",
    "continues": None,
    "genesis": "6" * 64,
    "intent": COMMITTED,
    "ledger_id": "l1",
    "model": "m1",
    "project": "p1",
    "proof_grade": False,
    "session_id": "s1",
    "started_at": "2020-01-01T00:00:00Z",
    "task_id": "t1",
}
SEAL = {
    "chain_hash": "1" * 64,
    "closing_reflection": True,
    "entries_root": "7" * 64,
    "entry_count": 7,
    "finalized_at": TIME,
    "first_index": 2,
    "last_index": 7,
    "record_count": 5,
    "root": "8" * 64,
    "session_id": "s1",
}
SETTING = {"by": "ann", "name": "writeback", "new": "reflection", "old": "any"}
KEY = {"by": "ann", "reason": COMMITTED, "vkey": "a.example+00000000+AQ=="}
ORIGIN = {
    "old_origin": "a.example",
    "old_root": "9" * 64,
    "old_size": 7,
    "origin": "b.example",
    "reason": COMMITTED,
}
CALL = {
    "args_sha256": COMMITTED,
    "caller": "client/1",
    "duration_us": 70,
    "first_index": 2,
    "last_index": 3,
    "outcome": "ok",
    "tool": "task_create",
}
CREATED = {
    "assignee": "agent-1",
    "description": COMMITTED,
    "priority": "high",
    "project_id": "p1",
    "status": "PLAN",
    "task_id": "t1",
    "title": COMMITTED,
}
UPDATED = {
    "attempt": 1,
    "changed": {},
    "description": None,
    "reason": None,
    "task_id": "t1",
    "title": None,
}


def entry_of(kind, body, at=AT):
    return Entry(at, kind, body, Source())


def created(**changes):
    body = {**CREATED, **changes}
    given = {"title": TITLE, "description": DESCRIPTION}
    payloads = {name: payload for name, payload in given.items() if body[name] is not None}
    return task_row(10, entry_of("task.created", body), payloads, None)


def updated(before, payloads=(), **changes):
    entry = entry_of("task.updated", {**UPDATED, **changes}, LATER)
    return task_row(20, entry, dict(payloads), before)


def differences(before, after):
    """The columns of the second row that the first has otherwise."""
    return {name for name in before._fields if getattr(before, name) != getattr(after, name)}


ROW_MAKERS = {
    "thought.recorded": (THOUGHT, lambda entry: thought_row(3, entry, "because")),
    "session.started": (SESSION, lambda entry: session_row(3, entry, NO_PAYLOAD)),
    "session.sealed": (SEAL, lambda entry: seal_row(3, entry)),
    "setting.changed": (SETTING, lambda entry: setting_row(3, entry)),
    "key.added": (KEY, lambda entry: key_row(3, entry, NO_PAYLOAD)),
    "key.retired": (KEY, lambda entry: key_row(3, entry, NO_PAYLOAD)),
    "origin.changed": (ORIGIN, lambda entry: origin_row(3, entry, NO_PAYLOAD)),
    "call.finished": (CALL, lambda entry: call_row(3, entry, NO_PAYLOAD)),
    "call.failed": (CALL, lambda entry: call_row(3, entry, NO_PAYLOAD)),
    "task.created": (CREATED, lambda entry: task_row(3, entry, {}, None)),
    "task.updated": (UPDATED, lambda entry: task_row(3, entry, {}, created())),
    "task.deleted": (
        {"reason": None, "task_id": "t1"},
        lambda entry: task_row(3, entry, {}, created()),
    ),
}


def test_a_thought_has_its_body_its_content_and_its_time():
    row = thought_row(3, entry_of("thought.recorded", THOUGHT), "because")
    assert row == ThoughtRow(
        log_index=3,
        content="because",
        created_at=THOUGHT["timestamp"],
        at=AT,
        erased_at=None,
        **THOUGHT,
    )


def test_a_thought_bound_to_no_session_has_no_session_columns():
    row = thought_row(3, entry_of("thought.recorded", THOUGHT | UNBOUND), "because")
    assert {name: getattr(row, name) for name in UNBOUND} == UNBOUND
    assert (row.task_id, row.hash) == ("t1", "3" * 64)


def test_a_session_has_its_metadata_and_is_not_ended():
    intent = Payload("find out", b"i" * 32)
    row = session_row(1, entry_of("session.started", SESSION), intent)
    assert row == SessionRow(
        log_index=1,
        session_id="s1",
        task_id="t1",
        caller="agent-1",
        intent="find out",
        intent_salt=b"i" * 32,
        started_at="2020-01-01T00:00:00Z",
        genesis="6" * 64,
        continues_session_id=None,
        continues_chain_hash=None,
        proof_grade=0,
        project="p1",
        model="m1",
        at=AT,
        ended_index=None,
        ended_at=None,
        end_reason=None,
    )


def test_a_session_that_continues_another_says_which_and_from_where():
    continues = {"chain_hash": "9" * 64, "session_id": "s0"}
    body = SESSION | {"continues": continues, "proof_grade": True, "caller": None, "task_id": None}
    row = session_row(1, entry_of("session.started", body), NO_PAYLOAD)
    assert (row.continues_session_id, row.continues_chain_hash) == ("s0", "9" * 64)
    assert (row.proof_grade, row.caller, row.task_id) == (1, None, None)
    assert (row.intent, row.intent_salt) == (None, None)


@pytest.mark.parametrize("is_closing", [True, False])
def test_a_seal_has_its_body_with_numbers_for_truth(is_closing):
    row = seal_row(9, entry_of("session.sealed", SEAL | {"closing_reflection": is_closing}))
    assert row == SealRow(
        log_index=9, at=AT, **(SEAL | {"closing_reflection": 1 if is_closing else 0})
    )
    assert type(row.closing_reflection) is int


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("any", "reflection", ('"any"', '"reflection"')),
        (None, "\u00e9", (None, '"\u00e9"')),
        (False, True, ("false", "true")),
        (0, 1, ("0", "1")),
        ("", "a\nb", ('""', '"a\\nb"')),
    ],
)
def test_a_setting_has_both_values_as_json(old, new, shown):
    body = SETTING | {"old": old, "new": new}
    row = setting_row(4, entry_of("setting.changed", body))
    assert row == SettingRow(4, "writeback", *shown, "ann", AT)
    assert setting_json(new) == row.new


def test_a_change_of_keys_has_its_body_its_reason_and_its_time():
    for kind, state in (("key.added", "added"), ("key.retired", "retired")):
        row = key_row(4, entry_of(kind, KEY), TITLE)
        assert row == KeyRow(4, state, KEY["vkey"], "ann", TITLE.text, TITLE.salt, AT)


def test_a_call_has_its_body_the_digest_of_its_arguments_and_its_time():
    for kind, state in (("call.finished", "finished"), ("call.failed", "failed")):
        row = call_row(4, entry_of(kind, CALL), TITLE)
        shown = ("task_create", "client/1", 70, "ok", TITLE.text, TITLE.salt, 2, 3)
        assert row == CallRow(4, state, *shown, AT)


def test_a_change_of_origin_has_its_body_its_reason_and_its_time():
    row = origin_row(4, entry_of("origin.changed", ORIGIN), TITLE)
    shown = ("a.example", 7, "9" * 64, "b.example")
    assert row == OriginRow(4, *shown, TITLE.text, TITLE.salt, AT)


def test_a_new_task_has_its_body_its_texts_and_its_first_attempt():
    assert created() == TaskRow(
        log_index=10,
        id="t1",
        title=TITLE.text,
        title_salt=TITLE.salt,
        description=DESCRIPTION.text,
        description_salt=DESCRIPTION.salt,
        reason=None,
        reason_salt=None,
        title_index=10,
        description_index=10,
        project_id="p1",
        status="PLAN",
        priority="high",
        assignee="agent-1",
        attempt=1,
        created_at=TIME,
        updated_at=TIME,
        deleted_at=None,
        created_index=10,
        at=AT,
        superseded_by=None,
    )


def test_a_new_task_without_a_description_points_at_none():
    row = created(description=None, project_id=None, priority=None, assignee=None)
    assert (row.description, row.description_salt, row.description_index) == (None, None, None)
    assert (row.project_id, row.priority, row.assignee) == (None, None, None)


def test_the_pointers_follow_the_entry_and_not_the_payload_which_may_be_gone():
    row = task_row(10, entry_of("task.created", CREATED), {}, None)
    assert (row.title, row.title_salt, row.description) == (None, None, None)
    assert (row.title_index, row.description_index) == (10, 10)


def test_an_update_changes_what_it_names_and_keeps_the_rest():
    before = created()
    row = updated(before, changed={"status": "APPLY", "assignee": None})
    assert (row.status, row.assignee) == ("APPLY", None)
    assert (row.log_index, row.at, row.updated_at) == (20, LATER, LATER_TIME)
    carried_texts = {"title", "title_salt", "description", "description_salt"}
    moved = {"log_index", "at", "updated_at"}
    assert differences(before, row) == {"status", "assignee"} | moved | carried_texts


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("status", "DONE"), ("project_id", "p2"), ("project_id", None), ("priority", "low")),
        *(("priority", None), ("assignee", "agent-2"), ("assignee", None)),
    ],
)
def test_each_value_may_be_changed_and_where_it_may_be_null_cleared(key, value):
    assert getattr(updated(created(), changed={key: value}), key) == value


def test_a_text_stands_only_in_the_version_that_brought_it():
    row = updated(created())
    assert (row.title, row.title_salt, row.title_index) == (None, None, 10)
    assert (row.description, row.description_salt, row.description_index) == (None, None, 10)


def test_a_new_title_is_pointed_at_where_it_stands():
    title = Payload("Choose two", b"u" * 32)
    row = updated(created(), {"title": title}, title=COMMITTED)
    assert (row.title, row.title_salt, row.title_index) == ("Choose two", b"u" * 32, 20)
    assert row.description_index == 10


def test_a_new_description_is_pointed_at_where_it_stands():
    row = updated(created(), {"description": DESCRIPTION}, description=COMMITTED)
    assert (row.description, row.description_salt) == DESCRIPTION
    assert (row.title_index, row.description_index) == (10, 20)


def test_a_cleared_description_is_pointed_at_no_more():
    row = updated(created(), changed={"description": None})
    assert (row.description, row.description_index) == (None, None)
    assert row.title_index == 10


def test_a_text_whose_payload_is_gone_is_still_pointed_at():
    row = updated(created(), title=COMMITTED, description=COMMITTED)
    assert (row.title, row.description) == (None, None)
    assert (row.title_index, row.description_index) == (20, 20)


def test_a_reason_stands_in_the_version_it_was_given_for_only():
    given = updated(created(), {"reason": REASON}, reason=COMMITTED)
    assert (given.reason, given.reason_salt) == REASON
    after = updated(given)
    assert (after.reason, after.reason_salt) == (None, None)


def test_the_attempt_is_the_one_the_entry_states():
    assert updated(created(), attempt=4).attempt == 4


def test_creation_is_remembered_by_every_version():
    row = updated(updated(created()), changed={"status": "DONE"})
    assert (row.created_index, row.created_at, row.id) == (10, TIME, "t1")


def test_a_deleted_task_keeps_its_state_and_says_when_and_why():
    before = created()
    entry = entry_of("task.deleted", {"reason": COMMITTED, "task_id": "t1"}, LATER)
    row = task_row(20, entry, {"reason": REASON}, before)
    assert row.deleted_at == row.updated_at == LATER_TIME
    assert (row.reason, row.reason_salt) == REASON
    assert (row.status, row.title_index, row.title) == ("PLAN", 10, None)
    assert row.deleted_at != before.deleted_at


def test_a_new_version_is_superseded_by_nothing_yet():
    before = created()._replace(superseded_by=20)
    assert updated(before).superseded_by is None
    assert before.superseded_by == 20


@pytest.mark.parametrize(
    ("status", "to", "expected"),
    [
        *(("VERIFY", "GATHER", 3), ("VERIFY", "DONE", 2), ("INIT", "GATHER", 2)),
        *(("VERIFY", None, 2), ("GATHER", "GATHER", 2)),
    ],
)
def test_only_a_failed_verification_begins_an_attempt(status, to, expected):
    assert attempt_after(created()._replace(status=status, attempt=2), to) == expected


@pytest.mark.parametrize("kind", ROW_MAKERS)
def test_an_entry_has_a_row_of_the_type_its_kind_says(kind):
    body, make_row = ROW_MAKERS[kind]
    row = make_row(entry_of(kind, body))
    assert type(row) is VIEW_OF_KIND[kind].row
    assert (row.log_index, row.at) == (3, AT)


@pytest.mark.parametrize("kind", ROW_MAKERS)
def test_keys_that_a_reader_does_not_know_never_reach_a_row(kind):
    body, make_row = ROW_MAKERS[kind]
    columns = VIEW_OF_KIND[kind].row._fields
    unknown = {name: "unknown" for name in columns if name not in body}
    assert "log_index" in unknown
    row = make_row(entry_of(kind, {**unknown, **body}))
    assert row == make_row(entry_of(kind, body))


def test_the_kinds_tried_here_have_rows_and_others_have_none():
    assert ROW_MAKERS.keys() <= VIEW_OF_KIND.keys()
    assert {"ledger.created", "session.ended"}.isdisjoint(VIEW_OF_KIND)


def test_every_row_has_a_table_of_its_own():
    assert {view.row for view in VIEW_OF_KIND.values()} <= TABLES.keys()
    assert len(set(TABLES.values())) == len(TABLES)


def test_every_link_is_a_column_that_starts_empty():
    row_types = {table: row_type for row_type, table in TABLES.items()}
    for table, columns in LINKS.items():
        for column in columns:
            assert row_types[table]._field_defaults[column] is None


@pytest.mark.parametrize("kind", ["session.started", "task.created", "task.updated"])
def test_every_payload_has_a_column_and_a_salt_beside_it(kind):
    assert payload_columns(kind) == PAYLOAD_FIELDS[kind] != ()
    fields = VIEW_OF_KIND[kind].row._fields
    for name in payload_columns(kind):
        assert fields.index(f"{name}_salt") == fields.index(name) + 1


@pytest.mark.parametrize("kind", ["thought.recorded", "session.sealed", "weather.observed"])
def test_a_kind_without_salted_payloads_has_no_such_columns(kind):
    assert payload_columns(kind) == ()
