"""What we sign, publish and prove, judged by Go's own packages for transparency logs.

`tools/make-go-check` builds the judge (`tools/go/foreign.go`), as `make test` does where it can.
Judging theirs by us is what `tests/vectors/` does.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

import affidavit
from affidavit.core.tlog_proof import decode_proof

JUDGE = Path(__file__).resolve().parents[2] / "tools" / "go" / "foreign"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """All that somebody outside has of a log with two keys, published with its entries."""
    if not JUDGE.exists():
        pytest.skip("there is no Go here: see tools/make-go-check")
    folder = tmp_path_factory.mktemp("foreign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFFIDAVIT_HOME", str(folder / "home"))
        with affidavit.open(folder / "trail.db", settings={"publish": "entries"}) as ledger:
            ledger.checkpoint()
            ledger.add_key()
            records = ledger.record_thoughts(
                [{"type": "plan", "task_id": "t", "agent_id": "a", "content": f"{n}"}
                 for n in range(600)]
            )  # fmt: skip
            ledger.publish(str(folder / "public"))
            note = ledger.checkpoint().note
            proofs = [ledger.prove(record.id) for record in records[::97]]
            growth = [ledger.prove_growth(size) for size in (1, 2, 255, 256, 257, 600, len(ledger))]
            return {
                "vkeys": [key.vkey for key in ledger.list_keys()],
                "note": note,
                "records": [
                    {"index": one.index, "entry": one.entry, "path": path_of(one.proof)}
                    for one in proofs
                ],
                "growth": [one.to_dict() for one in growth],
                "dir": str(folder / "public"),
                "entries": True,
            }


def path_of(proof):
    return [digest.hex() for digest in decode_proof(proof.encode()).hashes]


def judge(given):
    done = subprocess.run(
        [JUDGE], input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.strip()


def test_go_accepts_our_notes_proofs_and_published_logs(given):
    assert judge(given) == "ok"
    assert judge({**given, "entries": False}) == "ok"


def test_go_refuses_what_is_not_ours(given):
    """That it says ok above means something."""
    lines = given["note"].split("\n")
    root = base64.b64encode(bytes(32)).decode()
    forged = given["note"].replace(lines[2], root)
    assert "note:" in judge({**given, "note": forged})
    assert "signatures" in judge({**given, "vkeys": given["vkeys"][:1]})
    record = {**given["records"][3], "entry": given["records"][2]["entry"]}
    assert "record" in judge({**given, "records": [record]})
    growth = {**given["growth"][3], "old_root": given["growth"][2]["old_root"]}
    assert "growth" in judge({**given, "growth": [growth]})


def test_go_refuses_a_published_log_with_one_bit_changed(given):
    for name in ("tile/0/001", "tile/1/000.p/2", "tile/entries/000"):
        file = Path(given["dir"]) / name
        data = file.read_bytes()
        file.write_bytes(data[:70] + bytes([data[70] ^ 1]) + data[71:] if len(data) > 70 else b"")
        assert judge(given) != "ok", name
        file.write_bytes(data)
    assert judge(given) == "ok"
