"""A session put together entry by entry, with every kind a page may meet, sealed and signed.

It is made from the rules of the format alone, so that it can hold what no ledger would write:
hostile texts in every field, kinds nobody knows, and edits by somebody who has the signing key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from affidavit.core.archive import decode_archive
from affidavit.core.bundle import Evidence, RecordPath, Scope, SessionPart, Shown, write_evidence
from affidavit.core.canonical import canonicalize_value, hex_digest
from affidavit.core.canonical import encode_string as quote
from affidavit.core.checkpoint import TreeHead, sign_checkpoint
from affidavit.core.entry import Entry, Source, commitment, encode_entry
from affidavit.core.merkle import complete_levels, leaf_hash, prove_inclusion, tree_root
from affidavit.core.note import parse_signing_key
from affidavit.core.session import METADATA_KEYS, chain_hash, content_hash, genesis
from affidavit.core.thought import ZERO_HASH, task_hash
from affidavit.core.tlog_proof import TlogProof, encode_proof

LOG = json.loads(
    (Path(__file__).parents[1] / "vectors/data/affidavit-v1/log.json").read_text(encoding="utf-8")
)
KEY = parse_signing_key(LOG["test_signing_key"])
SESSION = "s1"
START_US = 1_776_384_000_000_000
_SALT = bytes(range(32))


class Tree:
    """The hashes of complete subtrees, as a prover asks for them."""

    def __init__(self, leaves: list[Any]) -> None:
        self._levels = complete_levels(leaves)
        self.root = tree_root(leaves)

    def read_hashes(self, nodes: Any) -> list[Any]:
        return [self._levels[level][position] for level, position in nodes]


class SwornSession:
    """Grows entry by entry; `parts` gives what an evidence file of it holds."""

    def __init__(self, intent: str = "choose an index", **metadata: Any) -> None:
        self.entries: list[bytes] = []
        self.payloads: dict[int, dict[str, Shown]] = {}
        self.thoughts: list[int] = []
        self.named: list[int] = []
        self.seal_index: int | None = None
        self.tasks: dict[str, str] = {}
        self.last: dict[str, Any] = {}
        body = {"ledger_id": "l-1", "origin": KEY.name, "settings": {}}
        self.add("ledger.created", body)
        self.metadata = {
            "caller": "builder", "continues": None, "ledger_id": "l-1", "proof_grade": False,
            "session_id": SESSION, "started_at": "2026-04-17T00:00:00.000Z", "task_id": "t1",
            **metadata,
        }  # fmt: skip
        self.chain = genesis(self.metadata)
        self.genesis = self.chain
        body = {**self.metadata, "genesis": self.chain, "model": "m-1", "project": "shop"}
        self.start_index = self.add("session.started", body, intent=intent)

    def add(self, kind: str, body: dict[str, Any], *, via: str = "python", **texts: Any) -> int:
        """An entry; each text becomes a payload of it."""
        index = len(self.entries)
        commits = {name: commitment(_SALT, text) for name, text in texts.items()}
        entry = Entry(START_US + index * 1_000_000, kind, {**body, **commits}, Source(via=via))
        self.entries.append(encode_entry(*entry))
        if texts:
            self.payloads[index] = {name: Shown(text, _SALT) for name, text in texts.items()}
        if body.get("session_id") == SESSION and self.seal_index is None:
            self.named.append(index)
        return index

    def named_entry(self, kind: str, body: dict[str, Any], **texts: Any) -> int:
        """An entry of the session."""
        return self.add(kind, {"session_id": SESSION, **body}, **texts)

    def think(
        self, content: str, type: str = "decision", task: str = "t1", agent: str = "builder"
    ) -> int:
        """A record in both chains."""
        seq, id_ = len(self.thoughts), f"r{len(self.thoughts)}"
        prev, time = self.tasks.get(task, ZERO_HASH), f"2026-04-17T00:00:{seq % 60:02d}.000Z"
        own, text = (quote(id_), quote(content)), (quote(task), quote(time))
        digest = content_hash(quote(agent), own[1], own[0], quote(SESSION), *text, type)
        chain = chain_hash(digest, self.chain)
        body = {
            "id": id_, "type": type, "task_id": task, "agent_id": agent, "timestamp": time,
            "prev_hash": prev, "hash": task_hash(own[1], own[0], prev, *text, type),
            "session_seq": seq, "content_hash": digest, "chain_hash": chain,
            "parent_chain_hash": self.chain,
        }  # fmt: skip
        index = self.named_entry("thought.recorded", body)
        self.payloads[index] = {"content": Shown(content)}
        self.tasks[task], self.chain, self.last = body["hash"], chain, body
        self.thoughts.append(index)
        return index

    def seal(self) -> int:
        """One root over the records, one over every entry that names the session."""
        body = {
            "session_id": SESSION, "chain_hash": self.chain, "entry_count": len(self.named),
            "root": Tree(self._leaves(self.thoughts)).root.hex(),
            "entries_root": Tree(self._leaves(self.named)).root.hex(),
            "record_count": len(self.thoughts), "finalized_at": "2026-04-17T01:00:00.000Z",
            "closing_reflection": self.last["type"] == "reflection",
            "first_index": self.thoughts[0], "last_index": self.thoughts[-1],
        }  # fmt: skip
        self.seal_index = len(self.entries)
        return self.add("session.sealed", body)

    def _leaves(self, indices: list[int]) -> list[Any]:
        return [leaf_hash(self.entries[index]) for index in indices]

    def parts(self, *more: int) -> dict[str, str]:
        """Every part of the evidence file, as text; `more` are entries that it also holds."""
        tree, size = Tree(list(map(leaf_hash, self.entries))), len(self.entries)
        head = TreeHead(KEY.name, size, tree.root)
        note = sign_checkpoint(head, [KEY])
        shown = sorted({*self.named, *more, *range(self.seal_index or size, size)})
        proofs = {
            index: encode_proof(TlogProof(index, tuple(prove_inclusion(index, size, tree)), note))
            for index in shown
        }
        evidence = Evidence(
            Scope("session", SESSION), f"log {KEY.verifier}\nquorum none\n".encode(), note,
            [(index, self.entries[index]) for index in shown],
            [(index, self.payloads[index]) for index in shown if index in self.payloads],
            shown, proofs.__getitem__, {self.start_index: self._describe()},
        )  # fmt: skip
        files = decode_archive(b"".join(write_evidence(evidence, head)))
        return {name: data.decode() for name, data in files.items()}

    def _describe(self) -> SessionPart:
        leaves = self._leaves(self.thoughts)
        sealed = self.seal_index is not None
        tree = Tree(leaves)
        paths = [
            tuple(prove_inclusion(place, len(leaves), tree)) if sealed else ()
            for place in range(len(leaves))
        ]
        return SessionPart(
            SESSION, {key: self.metadata[key] for key in METADATA_KEYS}, self.genesis,
            self.seal_index, tree.root.hex() if sealed else None, len(leaves),
            Tree(self._leaves(self.named)).root.hex() if sealed else None, len(self.named),
            whole=True,
            records=tuple(
                RecordPath(*item) for item in zip(self.thoughts, paths, strict=True)
            ),
        )  # fmt: skip


GREP = {"exit": 0, "stdout": "shop/retry.py:2\nshop/retry.py:9\n"}
EDIT = {
    "file_path": "shop/retry.py",
    "old_string": "def charge(order):\n    send(new_id(), order)\n",
    "new_string": "def charge(order, first):\n    send(first.id, order)\n",
}
DIFFS = [{
    "path": "shop/alerts.py",
    "diff": "--- a/shop/alerts.py\n+++ b/shop/alerts.py\n@@ -1,2 +1,2 @@\n window = 1\n"
    "-limit = 2\n+limit = 1\n@@ -9 +9 @@\n--- a comment\n+++ another\n",
}]  # fmt: skip


def add_tool_call(
    story: SwornSession, number: int, tool: str, arguments: Any, outcome: Any, *, ok: bool = True
) -> tuple[int, int]:
    """A request and its end, as a hook would have seen them."""
    request = {
        "request_id": f"00000000-0000-4000-8000-{number:012d}", "call_id": f"c{number}",
        "parent_id": None, "vendor": "anthropic", "tool_name": tool, "args_form": "jcs",
        "started_at_ms": 1, "actor": "builder", "model": "m-1", "attributes": None,
    }  # fmt: skip
    text = canonicalize_value(arguments)
    asked = story.named_entry(
        "tool_call.requested", request, via="hook", arguments=text,
        args_sha256=hex_digest(text.encode()),
    )  # fmt: skip
    end = {
        "request_id": request["request_id"], "call_id": request["call_id"], "latency_ms": 12,
        "status": "completed" if ok else "failed", "ended_at_ms": 13, "usage": None,
        "error_kind": None if ok else "exit", "error_msg": None, "outcome_form": "jcs",
    }  # fmt: skip
    kind = "tool_call.completed" if ok else "tool_call.failed"
    text = canonicalize_value(outcome)
    done = story.named_entry(
        kind, end, via="hook", outcome=text, outcome_sha256=hex_digest(text.encode())
    )
    return asked, done


def tell_story() -> SwornSession:
    """A small session with every kind of entry that a page shows in a way of its own."""
    story = SwornSession("Stop the double charge before the weekend")
    story.named_entry(
        "turn.asserted",
        {"id": "u1", "message_id": "m1", "parent_id": None, "thread_id": None, "actor": "ann",
         "turn_kind": "user", "occurred_at_ms": 1, "model": None, "usage": None,
         "attributes": None},
        via="hook", content="Some customers are charged twice. Please find out why.",
    )  # fmt: skip
    story.think("The retry sends a new request id, so both charges pass.", "analysis")
    add_tool_call(story, 1, "Bash", {"command": "grep -rn new_id shop"}, GREP)
    story.think("Reuse the id of the first try: the provider refuses a repeated one.")
    add_tool_call(story, 2, "Edit", EDIT, {"ok": True})
    proposal = {"request_id": "00000000-0000-4000-8000-000000000009", "confidence": "0.85"}
    story.named_entry("proposal.created", proposal, diffs=canonicalize_value(DIFFS))
    decided = {"decision": "approved", "by": "ann", "commit_hash": None, "at_ms": 9}
    story.named_entry("proposal.decided", {**proposal, **decided}, reason="one is enough")
    story.think("Alert on two charges with one id within an hour.", "plan", "t2", "reviewer")
    story.named_entry("weather.observed", {"sky": "clear"}, via="import", words="no cloud")
    story.think("The id is reused now; watch the limit of tries.", "reflection")
    story.seal()
    story.named_entry("session.ended", {"ended_at": "2026-04-17T01:00:01.000Z", "reason": "done"})
    return story
