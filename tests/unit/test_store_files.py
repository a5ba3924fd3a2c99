"""Where a file lies: network disks, names, and who has it open."""

import os

import pytest

import affidavit
from affidavit.errors import StoreError
from affidavit.stores.sqlite import files, registry

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /net nfs4 rw 0 0
tmpfs /net/local tmpfs rw 0 0
//nas/share /mnt/with\\040space cifs rw 0 0
me@host:/export /mnt/me/remote fuse.sshfs rw 0 0
short line
overlay /net/local/deep overlay rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/trail.db", None),
        ("/net/trail.db", "nfs4"),
        ("/network/trail.db", None),
        ("/net/local/trail.db", None),
        ("/net/local/deep/er/trail.db", None),
        ("/mnt/with space/a/trail.db", "cifs"),
        ("/mnt/me/remote/trail.db", "fuse.sshfs"),
        ("/mnt/me/trail.db", None),
    ],
)
def test_the_nearest_mount_decides(tmp_path, path, kind):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert files.find_network_filesystem(path, str(mounts)) == kind


def test_where_mounts_cannot_be_told_nothing_is_said(tmp_path):
    assert files.find_network_filesystem("/x/trail.db", str(tmp_path / "none")) is None


def test_a_network_disk_is_warned_about_loudly(path, monkeypatch):
    monkeypatch.setattr(files, "find_network_filesystem", lambda path: "nfs4")
    with pytest.warns(RuntimeWarning, match="network filesystem") as caught:
        affidavit.open(path).close()
    # The warning points at the caller's line.
    assert caught[0].filename == __file__


def test_handles_share_a_store_and_the_last_one_closes_it(path):
    before = dict(registry._open)
    one = affidavit.open(path)
    os.symlink(path, path + ".link")
    two, reader = affidavit.open(path + ".link"), affidavit.open(path, readonly=True)
    store, reading = one._context.store, reader._context.store
    assert two._context.store is store
    assert reading is not store
    one.close()
    assert not store._closed
    two.close()
    assert store._closed
    assert not reading._closed
    reader.close()
    assert reading._closed
    assert registry._open == before


def test_a_failing_open_keeps_nothing_registered(path, tmp_path):
    before = dict(registry._open)
    with pytest.raises(StoreError):
        affidavit.open(path, create=False)
    (tmp_path / "other").write_text("x" * 5000)
    with pytest.raises(StoreError):
        affidavit.open(tmp_path / "other")
    assert registry._open == before


def test_a_file_put_in_the_place_of_an_open_one_is_another_ledger(path, tmp_path):
    with affidavit.open(path) as old:
        os.rename(path, tmp_path / "moved.db")
        for ending in ("-wal", "-shm"):
            os.rename(path + ending, tmp_path / f"moved.db{ending}")
        with affidavit.open(path) as new:
            assert new.ledger_id != old.ledger_id
            assert new._context.store is not old._context.store
