"""Full-text search: words of every script, parts of identifiers; never what was erased."""

import shutil
from pathlib import Path

import pytest

import affidavit
from affidavit.core.tokens import index_tokens, query_tokens

TEXTS = {
    "chinese": "我们决定使用数据库来保存记录",
    "arabic": "قررنا أن نحفظ الكتاب في المكتبة",
    "code": "Call getUserName(user_id) in src/query_planner.py; HTTPServer2 answers.",
    "french": "Le café était fermé, déjà.",
    "thai": "เราตัดสินใจใช้ฐานข้อมูล",
    "japanese": "データベースを使うことにした",
    "plain": "We keep the index because the planner walked the whole chain.",
}


@pytest.fixture
def filled(ledger):
    for name, text in TEXTS.items():
        ledger.record_thought(
            type="decision", task_id=name, agent_id="a", content=text, id_fn=lambda name=name: name
        )
    return ledger


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("数据", "chinese"),
        ("数据库", "chinese"),
        ("记", "chinese"),
        ("الكتاب", "arabic"),
        ("كتاب", "arabic"),
        ("كِتَاب", "arabic"),
        ("user", "code"),
        ("getusername", "code"),
        ("username", "code"),
        ("getuser", "code"),
        ("getUserName", "code"),
        ("userid", "code"),
        ("planner py", "code"),
        ("http", "code"),
        ("cafe", "french"),
        ("DÉJÀ", "french"),
        ("ข้อมูล", "thai"),
        ("データ", "japanese"),
        ("plan* chain", "plain"),
    ],
)
def test_words_of_every_kind_are_found(filled, query, found):
    assert [hit.id for hit in filled.search(query)] == [found]


@pytest.mark.parametrize("query", ["据数", "ername", "planner café", "库据"])
def test_what_is_not_there_is_not_found(filled, query):
    assert filled.search(query) == []


def test_the_best_comes_first_and_filters_hold(ledger):
    session = ledger.start_session(intent="find the needle", session_id="s").session_id
    often = ledger.record_thought(
        type="plan", task_id="t1", agent_id="a", content="needle needle needle", session_id=session
    )
    once = ledger.record_thought(
        type="plan",
        task_id="t2",
        agent_id="a",
        content="one needle in a very large haystack of words",
    )
    task = ledger.create_task(title="a needle for the task")
    assert ledger.search("needle")[0].id == often.id
    assert {hit.kind for hit in ledger.search("needle")} == {
        "session.started",
        "thought.recorded",
        "task.created",
    }
    assert [hit.id for hit in ledger.search("needle", task_id="t2")] == [once.id]
    assert {hit.index for hit in ledger.search("needle", session_id="s")} == {1, often.index}
    assert [hit.task_id for hit in ledger.search("needle", kind="task")] == [task.id]
    assert [hit.id for hit in ledger.search("needle", kind="thought.recorded", limit=1)] == [
        often.id
    ]
    assert [hit.index for hit in ledger.search("needle", since_us=task.at)] == [task.index]
    assert task.index not in {hit.index for hit in ledger.search("needle", until_us=task.at)}


def test_an_excerpt_shows_where(ledger):
    ledger.record_thought(
        type="plan", task_id="t", agent_id="a", content="x " * 500 + "needle" + " y" * 500
    )
    [hit] = ledger.search("needle")
    assert "needle" in hit.excerpt
    assert len(hit.excerpt) < 200


def test_tool_calls_and_turns_are_found(ledger):
    ledger.set(payloads="keep")
    one, two = "7f000000-0000-4000-8000-000000000001", "7f000000-0000-4000-8000-000000000002"
    ledger.upsert_turn(one, one, "user", "please frobnicate")
    ledger.request_tool_call(two, "c", None, "v", "read", arguments={"path": "frobnicate.txt"})
    ledger.finish_tool_call(two, "c", "failed", error_kind="io", error_msg="frobnicate is gone")
    assert {(hit.kind, hit.field) for hit in ledger.search("frobnicate")} == {
        ("turn.asserted", "content"),
        ("tool_call.requested", "arguments"),
        ("tool_call.failed", "error_msg"),
    }


def test_what_others_recorded_is_found_at_once(filled, path):
    assert filled.search("newcomer") == []
    with affidavit.open(path) as other:
        other.record_thought(type="plan", task_id="t", agent_id="a", content="a newcomer")
    assert len(filled.search("newcomer")) == 1


def test_erased_text_is_unfindable_and_in_no_file(filled, path):
    assert filled.search("fermé")
    filled.erase(record_id="french", by="owner")
    assert filled.search("fermé") == []
    for name in Path(path).parent.glob("trail.db*"):
        assert b"ferme" not in name.read_bytes(), name


def test_an_index_of_another_log_is_made_anew(open_ledger, path):
    ledger = open_ledger()
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="the first one")
    assert ledger.search("first")
    ledger.close()
    Path(path).unlink()
    ledger = open_ledger()
    ledger.record_thought(type="plan", task_id="t", agent_id="a", content="the second one")
    assert ledger.search("first") == []
    assert len(ledger.search("second")) == 1


def test_the_index_may_be_deleted_or_impossible(filled, path, tmp_path):
    assert filled.search("planner")
    filled.close()
    for name in Path(path).parent.glob("trail.db.search*"):
        name.unlink()
    shutil.copy(path, tmp_path / "copy.db")
    (tmp_path / "copy.db.search").mkdir()
    with affidavit.open(tmp_path / "copy.db", readonly=True) as copy:
        assert len(copy.search("planner")) == 2


def test_a_query_without_a_word_is_refused(ledger):
    with pytest.raises(affidavit.InputError, match="no word"):
        ledger.search("--- !")


def test_a_ledger_in_memory_can_be_searched():
    with affidavit.open(":memory:") as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="kept nowhere")
        assert len(ledger.search("nowhere")) == 1


def test_every_query_token_of_a_word_is_a_token_of_its_text():
    for text in TEXTS.values():
        assert set(query_tokens(text)) <= set(index_tokens(text))
