"""Attacks on a published log: each byte of each file, files taken away, another history."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from itertools import chain, count
from pathlib import Path

import pytest

import affidavit
from affidavit.apps import places, wiring
from affidavit.apps.auditor import published as reading
from affidavit.apps.auditor.published import Folder, Server, check_published
from affidavit.core.checkpoint import parse_checkpoint, sign_checkpoint
from affidavit.core.merkle import Digest
from affidavit.core.misbehaviour import decode_fork, encode_fork
from affidavit.core.note import parse_signing_key, parse_verifier_key
from affidavit.errors import AffidavitError, CannotVerify, InputError, StoreError
from affidavit.verify.evidence import CONSISTENT, UNVERIFIED, VERIFIED, VIOLATION
from affidavit.verify.misbehaviour import verify_misbehaviour
from affidavit.verify.published import verify_published
from affidavit.verify.trust import NOBODY, Trust


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFFIDAVIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def think(ledger, many, content="why"):
    ledger.record_thoughts(
        [{"type": "plan", "task_id": "t", "agent_id": "a", "content": content}] * many
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "published"


@pytest.fixture
def publish(tmp_path, folder):
    """Publishes a log of its own; answers with the trust of somebody who has its key."""

    def publish(many, *, entries=True):
        settings = {"publish": "entries" if entries else "hashes"}
        with affidavit.open(tmp_path / "trail.db", settings=settings) as ledger:
            think(ledger, many)
            ledger.publish(str(folder))
            [key] = ledger.list_keys()
        return Trust(keys=(parse_verifier_key(key.vkey),))

    return publish


def verdict(folder, trust):
    return verify_published(Folder(str(folder)), trust).report


def codes(report):
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize("many", [1, 300])
def test_a_published_log_is_verified(publish, folder, many):
    trust = publish(many)
    report = verdict(folder, trust)
    assert (report.verdict, report.findings) == (VERIFIED, ())
    assert report.checked["entries"] == report.head.size == many + 2
    assert verdict(folder, NOBODY).verdict == CONSISTENT


def test_hashes_alone_are_verified_and_what_they_do_not_show_is_said(publish, folder):
    report = verdict(folder, publish(300, entries=False))
    assert (report.verdict, report.checked["entries"]) == (VERIFIED, 0)
    assert any("only hashes" in said for said in report.unchecked)


def test_every_byte_of_every_file_counts(publish, folder):
    """One bit at a time: never verified, never anything but a verdict or an error of ours."""
    trust = publish(1)
    files = [file for file in folder.rglob("*") if file.is_file() and file.name[0] != "."]
    assert len(files) == 3
    for file in files:
        data = file.read_bytes()
        for at in range(len(data)):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            try:
                report = verdict(folder, trust)
            except AffidavitError:
                continue
            assert report.verdict != VERIFIED, (file.name, at)
        file.write_bytes(data)
    assert verdict(folder, trust).verdict == VERIFIED


def test_a_bit_in_every_tile_of_a_larger_log_is_found_at_its_place(publish, folder):
    trust = publish(600)
    for file in sorted((folder / "tile").rglob("*")):
        if not file.is_file():
            continue
        data = file.read_bytes()
        name = str(file.relative_to(folder))
        for at in (0, len(data) // 2, len(data) - 1):
            file.write_bytes(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :])
            report = verdict(folder, trust)
            assert report.verdict in (VIOLATION, UNVERIFIED), name
            if report.verdict == VIOLATION and "entries" in name:
                assert {finding.place for finding in report.findings} == {name}
        file.write_bytes(data)


def test_a_file_that_is_gone_is_missing_and_no_violation(publish, folder):
    trust = publish(600)
    for name in ("tile/0/000", "tile/0/002.p/90", "tile/1/000.p/2", "tile/entries/001"):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        report = verdict(folder, trust)
        assert (report.verdict, report.findings) == (UNVERIFIED, ())
        assert any(name in said for said in report.missing)
        (folder / name).write_bytes(kept)
    (folder / "checkpoint").unlink()
    with pytest.raises(CannotVerify):
        verdict(folder, trust)


def test_a_pipe_instead_of_a_file_keeps_nobody_waiting(publish, folder):
    trust = publish(1)
    (folder / "tile/0/000.p/3").unlink()
    os.mkfifo(folder / "tile/0/000.p/3")
    assert verdict(folder, trust).verdict == UNVERIFIED


def test_an_older_checkpoint_is_verified_when_its_partial_tiles_are_gone(publish, folder):
    trust = publish(100)
    note = (folder / "checkpoint").read_bytes()
    publish(300)
    assert not (folder / "tile/0/000.p").exists()
    (folder / "checkpoint").write_bytes(note)
    report = verdict(folder, trust)
    assert (report.verdict, report.head.size) == (VERIFIED, 102)


class Counting(Folder):
    """Says which files were read."""

    def __init__(self, path):
        super().__init__(path)
        self.names = set()

    def read(self, path, bytes_max):
        self.names.add(path)
        return super().read(path, bytes_max)


def test_from_a_kept_checkpoint_only_what_is_new_is_read(publish, folder):
    trust = publish(1_000)
    pin = parse_checkpoint((folder / "checkpoint").read_bytes())
    publish(100)
    files = Counting(str(folder))
    report = verify_published(files, trust._replace(pinned=(pin,))).report
    assert report.verdict == VERIFIED
    assert sum("grown" in who for who in report.vouchers) == 1
    twice = trust._replace(pinned=(pin,), kept=(pin,))
    assert verify_published(files, twice).report.vouchers == report.vouchers
    assert not {"tile/0/000", "tile/0/001", "tile/entries/000"} & files.names
    only_pinned = verify_published(files, Trust(pinned=(pin,))).report
    assert only_pinned.verdict == VERIFIED
    who = f"who added the entries from {pin.claims.size:,} on"
    assert any(said.startswith(who) for said in only_pinned.unchecked)
    assert not any(said.startswith(who) for said in report.unchecked)


@pytest.fixture
def forked(publish, folder, tmp_path, home):
    """The signer's memory was taken away, and another history signed by the same key."""
    trust = publish(10)
    pin = parse_checkpoint((folder / "checkpoint").read_bytes())
    path = tmp_path / "trail.db"
    with wiring.open_ledger(path) as ledger:
        key_file = next((home / "keys").iterdir())
        name = ledger.checkpoint().origin
    forged = tmp_path / "forged.db"
    ids = chain([name.partition("/")[2]], map(str, count()))
    with wiring.open_ledger(forged, id_fn=lambda: next(ids)) as other:
        shutil.rmtree(home / "state")
        shutil.rmtree(folder)
        think(other, 30, "another past")
        secret = parse_signing_key(key_file.read_text().strip()).secret
        key_file.unlink()
        other._context.keys._new_secret = lambda: secret
        other.publish(str(folder))
    return trust, pin


def test_a_fork_gives_a_proof_that_is_checked_alone(forked, folder):
    trust, pin = forked
    found = verify_published(Folder(str(folder)), trust._replace(pinned=(pin,)))
    assert (found.report.verdict, codes(found.report)) == (VIOLATION, {"fork"})
    answer = check_published(str(folder), trust._replace(pinned=(pin,)))
    assert answer.exit_code == 1
    [proof] = answer.data["proofs_of_misbehaviour"]
    data = Path(proof).read_bytes()
    assert decode_fork(data).older.claims.size == 12
    assert verify_misbehaviour(data, trust).verdict == VIOLATION


def test_of_a_server_whose_first_tiles_disagree_no_more_is_read(publish, folder):
    trust = publish(1_000)
    for name in ("tile/0/000", "tile/0/001", "tile/0/002"):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(bytes([data[0] ^ 1]) + data[1:])
    files = Counting(str(folder))
    report = verify_published(files, trust).report
    [finding] = report.findings
    assert (finding.code, finding.place) == ("tree_node_bad", "tile/0/000")
    assert any("there the reading ended" in said for said in report.unchecked)
    edge = {"tile/0/003.p/234", "tile/1/000.p/3"}
    assert files.names == {"checkpoint", "tile/0/000", *edge}
    top = folder / "tile/1/000.p/3"
    top.write_bytes(top.read_bytes()[::-1])
    files = Counting(str(folder))
    report = verify_published(files, trust).report
    assert (codes(report), files.names) == ({"tree_node_bad"}, {"checkpoint", *edge})


def test_of_what_is_not_signed_as_it_should_be_nothing_is_read(publish, folder):
    trust = publish(10)
    note = (folder / "checkpoint").read_bytes()
    head, blank, line = note.rpartition(b" ")
    (folder / "checkpoint").write_bytes(head + blank + line[:20] + b"AAAA" + line[24:])
    files = Counting(str(folder))
    report = verify_published(files, trust).report
    assert (codes(report), files.names) == ({"signature_bad"}, {"checkpoint"})


def test_entries_that_are_all_others_are_not_read_to_the_end(publish, folder):
    trust = publish(1_000)
    for file in (folder / "tile/entries").iterdir():
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b'"type":"plan"', b'"type":"plam"'))
    files = Counting(str(folder))
    report = verify_published(files, trust).report
    assert 100 <= report.finding_count < 300
    assert "tile/entries/000" in files.names
    assert "tile/entries/001" not in files.names


def test_two_notes_of_one_size_are_a_proof_too(publish, folder):
    trust = publish(10)
    pin = parse_checkpoint((folder / "checkpoint").read_bytes())
    [key] = trust.keys
    secret = next((places.keys_folder()).glob("*.key")).read_text().strip()
    head = pin.claims._replace(root=Digest(bytes(32)))
    other = parse_checkpoint(sign_checkpoint(head, [parse_signing_key(secret)]))
    found = verify_published(Folder(str(folder)), Trust(keys=(key,), pinned=(other,)))
    [fork] = found.forks
    assert verify_misbehaviour(encode_fork(fork), trust).verdict == VIOLATION


def test_another_history_signed_by_a_stolen_key_is_not_caught(forked, folder):
    """Without a checkpoint from before; the report says what it did not look at."""
    trust, _ = forked
    report = verdict(folder, trust)
    assert report.verdict == VERIFIED
    assert any("no witness" in said for said in report.unchecked)


def test_an_older_publication_put_back_is_not_caught(publish, folder):
    trust = publish(10)
    shutil.copytree(folder, folder.with_name("older"))
    publish(10)
    report = verdict(folder.with_name("older"), trust)
    assert (report.verdict, report.head.size) == (VERIFIED, 12)
    assert any("from entry 12 on" in said for said in report.unchecked)


def test_a_log_that_was_cut_is_not_verified_against_what_was_kept(publish, folder):
    trust = publish(10)
    shutil.copytree(folder, folder.with_name("older"))
    publish(10)
    pin = parse_checkpoint((folder / "checkpoint").read_bytes())
    report = verdict(folder.with_name("older"), trust._replace(pinned=(pin,)))
    assert report.verdict == UNVERIFIED
    assert any("the log was cut" in said for said in report.missing)


@pytest.fixture
def serve(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            if "/elsewhere/" in self.path:
                self.send_response(302)
                self.send_header("Location", "/checkpoint")
                self.end_headers()
            elif "/large/" in self.path:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"x" * 1_000_100)
            elif "/broken/" in self.path:
                self.send_response(500)
                self.end_headers()
            else:
                super().do_GET()

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_is_read_from_a_server(publish, folder, serve):
    trust = publish(300)
    report = verify_published(Server(f"{serve}/"), trust).report
    assert (report.verdict, report.checked["entries"]) == (VERIFIED, 302)


def test_what_a_server_must_not_do(publish, serve, monkeypatch):
    trust = publish(1)
    for place in ("elsewhere", "broken"):
        with pytest.raises(StoreError):
            verify_published(Server(f"{serve}/{place}"), trust)
    with pytest.raises(CannotVerify, match="more than"):
        verify_published(Server(f"{serve}/large"), trust)
    monkeypatch.setattr(reading, "TIMEOUT_S", 0.5)
    with pytest.raises(StoreError):
        verify_published(Server("http://127.0.0.1:1/"), trust)


@pytest.fixture
def answer_raw():
    """A server that answers with bytes, and then goes on with one of them until it is hung up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(first, drip):
        def answer():
            with listener.accept()[0] as caller, suppress(OSError):
                caller.recv(65536)
                caller.sendall(first)
                while drip:
                    caller.sendall(drip)
                    time.sleep(0.02)

        threading.Thread(target=answer, daemon=True).start()
        return Server(f"http://127.0.0.1:{listener.getsockname()[1]}")

    yield serve
    listener.close()


@pytest.mark.parametrize(
    "first",
    [b"", b"no answer\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
     b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200, b"HTTP/1.1 206 OK\r\n\r\nabc",
     b"HTTP/1.1 204 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
)  # fmt: skip
def test_an_answer_that_is_none_is_no_verdict(answer_raw, first):
    with pytest.raises(StoreError, match="cannot be read"):
        verify_published(answer_raw(first, b""))


@pytest.mark.parametrize(
    ("first", "drip"),
    [(b"HTTP/1.1 200 OK\r\nX: ", b"a"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
     (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
     (b"HTTP/1.1 200 OK\r\n\r\n", b"a")],
)  # fmt: skip
def test_a_server_that_drips_keeps_nobody_waiting(answer_raw, monkeypatch, first, drip):
    monkeypatch.setattr(reading, "TIMEOUT_S", 0.3)
    with pytest.raises(StoreError, match="timed out"):
        verify_published(answer_raw(first, drip))


@pytest.mark.parametrize(
    "address",
    ["http://example.org/log", "ftp://example.org/log", "https://", "file:///etc", "http://",
     "https://user@example.org/", "https://example.org/?q", "http://127.0.0.1.example.org/"],
)  # fmt: skip
def test_addresses_that_are_not_read(address):
    with pytest.raises(InputError):
        Server(address)


def test_the_command_verifies_a_folder(publish, folder, capsys):
    from affidavit.apps.cli.main import main

    trust = publish(5)
    assert main(["verify", str(folder), "--key", str(trust.keys[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["verdict"] == VERIFIED
    assert main(["verify", str(folder)]) in (0, 3)
    assert main(["verify", str(folder), "--session", "s"]) == 2
    assert main(["verify", str(folder), "--new"]) == 2
