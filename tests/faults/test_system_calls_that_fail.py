"""Real errors of the disk, one system call at a time: the answer is true, and the next call works."""

import pytest
from faults.stubborn import FACTS
from faults.support import acknowledged, assert_all_there, audit
from faults.tracing import find_tracers

import affidavit

PLACES = [
    *(("pwrite64", "-wal", number, error) for error in ("EIO", "ENOSPC") for number in range(1, 16)),
    *(("fdatasync", "-wal", number, "EIO") for number in range(1, 6)),
    *(("pwrite64", "", number, "ENOSPC") for number in range(1, 3)),
    *(("fdatasync", "", number, "EIO") for number in range(1, 3)),
]
# Each of these promises that nothing was recorded.
CERTAIN = {"ERR_STORE_FULL", "ERR_STORE_UNAVAILABLE"}


@pytest.fixture(scope="module")
def tracer(tmp_path_factory):
    return find_tracers(tmp_path_factory.mktemp("tracing"))[-1]


@pytest.mark.parametrize(("call", "suffix", "number", "error"), PLACES)
def test_one_failing_call_loses_nothing(tracer, folder, call, suffix, number, error):
    path, side = str(folder / "trail.db"), str(folder / "side")
    _, done = tracer.run(
        "stubborn", path, side, fail=(call, path + suffix, number, error), limit_s=30
    )
    assert done.returncode == 0, done.stderr
    said = acknowledged(side)
    kept = [fact for fact in said if fact[0] == "thought"]
    refused = [fact for fact in said if fact[0] == "refused"]
    assert len(kept) + len(refused) == FACTS
    assert len(said) - len(kept) <= 1, "one call failed once"
    assert_all_there(path, kept)
    with affidavit.open(path) as ledger:
        for _, identity, code in refused:
            assert code in {*CERTAIN, "ERR_OUTCOME_UNKNOWN"}
            assert code == "ERR_STORE_FULL" if error == "ENOSPC" else code != "ERR_STORE_FULL"
            assert code not in CERTAIN or ledger.get_thought(identity) is None
    audit(path)
