"""Every acknowledgement follows a sync of the -wal after its last write: seen in system calls."""

import shutil
from pathlib import Path

import pytest

from faults.support import acknowledged, assert_all_there, audit
from faults.tracing import SYNCS, find_tracers


@pytest.fixture(scope="module")
def tracers(tmp_path_factory):
    return find_tracers(tmp_path_factory.mktemp("tracing"))


def watch(tracer, folder, how):
    """Run the watched child; its events, and its acknowledgements with their place in the trace."""
    path, side = str(folder / "new" / "deeper" / "trail.db"), str(folder / "side")
    events, done = tracer.run("durable", path, side, how)
    assert done.returncode == 0, done.stderr
    told = [event for event in events if event.path == side]
    said = acknowledged(side)
    assert len(told) == len(said) > 10
    return path, events, list(zip(told, said, strict=True))


def synced_length(events, path, before):
    """How much of a file was certain to be on disk at a place in the trace."""
    ends = [
        sync.start
        for sync in events
        if sync.path == path and sync.call in SYNCS and sync.result == 0 and sync.end < before
    ]
    covered = [
        event.offset + event.length
        for event in events
        if event.path == path and event.call == "pwrite64" and event.end < max(ends, default=-1)
    ]
    return max(covered, default=0)


@pytest.mark.parametrize("how", ["one_by_one", "together"])
def test_a_copy_cut_to_what_was_synced_holds_every_acknowledged_fact(tracers, tmp_path, how):
    for number, tracer in enumerate(tracers):
        folder = tmp_path / str(number)
        folder.mkdir()
        path, events, told = watch(tracer, folder, how)
        wal = path + "-wal"
        for place, (ack, _) in enumerate(told):
            length = synced_length(events, wal, ack.start)
            copy = cut_copy(path, folder / "cut", length)
            assert_all_there(copy, [fact for _, fact in told[: place + 1]])
        audit(copy)


def cut_copy(path, folder, length):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy = folder / "trail.db"
    shutil.copy(path, copy)
    with open(path + "-wal", "rb") as wal:
        Path(f"{copy}-wal").write_bytes(wal.read(length))
    return str(copy)


def test_every_acknowledgement_follows_a_sync_after_its_last_write(tracers, tmp_path):
    for number, tracer in enumerate(tracers):
        folder = tmp_path / str(number)
        folder.mkdir()
        path, events, told = watch(tracer, folder, "one_by_one")
        last_ack = -1
        for ack, fact in told:
            between = [event for event in events if last_ack < event.start < ack.start]
            writes = [e for e in between if e.path == f"{path}-wal" and e.call == "pwrite64"]
            syncs = [e for e in between if e.path == f"{path}-wal" and e.call in SYNCS]
            assert writes, f"nothing was written for {fact}"
            assert any(
                sync.start > writes[-1].end and sync.end < ack.start and sync.result == 0
                for sync in syncs
            ), f"{fact} was acknowledged before it was synced"
            last_ack = ack.start
        assert_file_and_names_are_synced(path, events, told[0][0].start)


def assert_file_and_names_are_synced(path, events, first_ack):
    """The database, and every folder that got a new name, are on disk before the first answer."""
    before = [event for event in events if event.end < first_ack]
    writes = [e for e in before if e.path == path and e.call == "pwrite64"]
    syncs = [e for e in before if e.path == path and e.call in SYNCS]
    assert syncs[-1].start > writes[-1].end, "the database itself was not synced"
    assert not [e for e in events if e.path == path and e.start > first_ack]
    home = Path(path).parent
    wal = next(e.start for e in before if e.path == f"{path}-wal")
    synced = [(e.path, e.start) for e in before if e.call in SYNCS]
    assert any(name == str(home) and place > wal for name, place in synced), "the -wal's name"
    for folder in (home, home.parent, home.parent.parent):
        assert str(folder) in {name for name, _ in synced}, f"a new name in {folder} was not synced"


def test_threads_share_syncs(tracers, tmp_path):
    path, events, told = watch(tracers[0], tmp_path, "together")
    first = told[0][0].start
    syncs = [e for e in events if e.path == f"{path}-wal" and e.call in SYNCS and e.start > first]
    assert 0 < len(syncs) < len(told) / 2, f"{len(syncs)} syncs for {len(told)} facts"
