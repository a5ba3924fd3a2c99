"""Real errors of the disk, one system call at a time: the answer is true, the next call works."""

import pytest

import affidavit
from faults.stubborn import FACTS
from faults.support import acknowledged, assert_all_there, audit
from faults.tracing import find_tracers

# Calls on the -wal of a ledger that exists: the first facts, frame heads and pages alike.
WRITES = (1, 2, 3, 10, 15, 16, 17, 18, 19, 20, 33, 50)
RECORDING = [
    *(("pwrite64", number, error) for error in ("EIO", "ENOSPC") for number in WRITES),
    *(("fdatasync", number, "EIO") for number in range(1, 6)),
]
# Calls while a file is made.
MAKING = [
    *(("pwrite64", "-wal", number, error) for error in ("EIO", "ENOSPC") for number in (1, 2, 40)),
    *(("fdatasync", "-wal", number, "EIO") for number in (1, 2)),
    *(("pwrite64", "", number, error) for error in ("EIO", "ENOSPC") for number in (1, 2)),
    *(("fdatasync", "", number, "EIO") for number in (1, 2)),
]
# Each of these promises that nothing was recorded.
CERTAIN = {"ERR_STORE_FULL", "ERR_STORE_UNAVAILABLE"}


@pytest.fixture(scope="module")
def tracer(tmp_path_factory):
    return find_tracers(tmp_path_factory.mktemp("tracing"))[-1]


@pytest.mark.parametrize(("call", "number", "error"), RECORDING)
def test_one_failing_call_while_recording_loses_nothing(tracer, folder, call, number, error):
    path = str(folder / "trail.db")
    with affidavit.open(path) as ledger:
        ledger.record_thought(type="plan", task_id="t", agent_id="a", content="before")
    refused = run_and_look(tracer, folder, (call, f"{path}-wal", number, error))
    assert len(refused) == 1, "one call failed once"


@pytest.mark.parametrize(("call", "suffix", "number", "error"), MAKING)
def test_one_failing_call_while_a_ledger_is_made_spoils_nothing(
    tracer, folder, call, suffix, number, error
):
    fail = (call, str(folder / "trail.db") + suffix, number, error)
    assert len(run_and_look(tracer, folder, fail)) <= 1


def run_and_look(tracer, folder, fail):
    path, side = str(folder / "trail.db"), str(folder / "side")
    _, done = tracer.run("stubborn", path, side, fail=fail, limit_s=30)
    assert done.returncode == 0, done.stderr
    said = acknowledged(side)
    kept = [fact for fact in said if fact[0] == "thought"]
    refused = [fact for fact in said if fact[0] == "refused"]
    assert len(kept) + len(refused) == FACTS
    assert_all_there(path, kept)
    with affidavit.open(path) as ledger:
        for _, identity, code in refused:
            assert code in {*CERTAIN, "ERR_OUTCOME_UNKNOWN"}
            assert (code == "ERR_STORE_FULL") == (fail[3] == "ENOSPC")
            assert code not in CERTAIN or ledger.get_thought(identity) is None
        mode = ledger._context.store._committer.connection().execute("PRAGMA journal_mode")
        assert mode.fetchone() == ("wal",)
    audit(path)
    return [fact for fact in said if fact[0] != "thought"]
