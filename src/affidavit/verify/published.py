"""A published log, checked: its checkpoint, every tile under it, and the entries where they are.

    the checkpoint      by what the verifier trusts
    kept checkpoints    the tiles show that the log grew out of each, or that it forked
    tiles               each is the one that the tile above it names; the edge gives the root
    entries             each is the one that its tile names, canonical, and not older than the last

From a checkpoint that was kept, only what is new is read. Whoever reads for us may fail or lie:
every byte is checked against the signed root, and where the first do not hold, no more are read.
Memory stays constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from affidavit.core.checkpoint import UnverifiedCheckpoint, parse_checkpoint
from affidavit.core.entry import ENTRY_BYTES_MAX, decode_entry
from affidavit.core.kinds import BODIES
from affidavit.core.merkle import (
    Digest,
    complete_levels,
    leaf_hash,
    prove_consistency,
    read_root,
)
from affidavit.core.misbehaviour import Fork, find_fork
from affidavit.core.note import NOTE_BYTES_MAX
from affidavit.core.tile import (
    TILE_HEIGHT,
    TILE_WIDTH,
    Bundle,
    Tile,
    TiledTree,
    bundles_between,
    decode_bundle,
    decode_tile,
    tiles_between,
)
from affidavit.errors import CannotVerify, InputError
from affidavit.verify.evidence import (
    CONSISTENT,
    UNVERIFIED,
    VERIFIED,
    VIOLATION,
    EvidenceReport,
    check_order,
    refuse,
)
from affidavit.verify.findings import Findings
from affidavit.verify.trust import NOBODY, Trust, judge_checkpoint

_CHECKPOINT: Final = "checkpoint"
_TILE_BYTES: Final = TILE_WIDTH * 32
_BUNDLE_BYTES_MAX: Final = TILE_WIDTH * (ENTRY_BYTES_MAX + 2)
_NO_ENTRIES: Final = (
    "the entries themselves: only hashes are published, so that nothing was changed since is "
    "shown, and not what was recorded"
)
_STOPPED: Final = "nothing behind what does not hold: there the reading ended"
# So many entries are told of that are not what the tiles name.
_ENOUGH: Final = 100

Progress = Callable[[int, int], None]


class PublishedFiles(Protocol):
    """The only thing asked of a folder or a server."""

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """A file of at most so many bytes; None where there is none."""
        ...


class PublishedReport(NamedTuple):
    """The verdict, and proofs of every fork that was met."""

    report: EvidenceReport
    forks: tuple[Fork, ...]


def verify_published(
    files: PublishedFiles, trust: Trust = NOBODY, progress: Progress | None = None
) -> PublishedReport:
    """Check all that a published log shows."""
    note = files.read(_CHECKPOINT, NOTE_BYTES_MAX)
    if note is None:
        raise CannotVerify(
            "no checkpoint is published there", hint="Is it the folder of a published log?"
        )
    findings = Findings()
    try:
        found = parse_checkpoint(note)
    except InputError as error:
        findings.add("evidence_malformed", None, _CHECKPOINT, error.message)
        said = "nothing behind a checkpoint that cannot be read"
        return PublishedReport(refuse(findings, said), ())
    return _Check(files, found, trust, findings).run(progress)


class _Missing(Exception):
    """A file is not there, or is not of its size."""


class _Check:
    """One check of one published log."""

    def __init__(
        self,
        files: PublishedFiles,
        found: UnverifiedCheckpoint,
        trust: Trust,
        findings: Findings,
    ) -> None:
        self._files = files
        self._found = found
        self._head = found.claims
        self._findings = findings
        size = found.claims.size
        mine = trust.pins
        # Notes of another size say something here, unlike beside a single file.
        self._grown = [
            pin for pin in mine
            if pin.claims.origin == self._head.origin and pin.claims.size != size
        ]  # fmt: skip
        rest = trust._replace(
            pinned=tuple(pin for pin in trust.pinned if pin not in self._grown),
            kept=tuple(pin for pin in trust.kept if pin not in self._grown),
        )
        self._is_named = trust.is_named
        self._standing = judge_checkpoint(found, rest, findings)
        self._needs_key = bool(trust.keys or trust.policy)
        self._last: dict[int, tuple[str, list[Digest]]] = {}
        self._tree = TiledTree(size, self._read_tile)
        self._checked = {"signatures": 0, "tiles": 0, "entries": 0}
        self._unchecked = list(self._standing.unchecked)
        self._missing = list(self._standing.missing)
        self._vouchers = list(self._standing.vouchers)
        same = [pin for pin in mine if pin.claims.size == size]
        self._forks = [fork for pin in same if (fork := find_fork(pin, found)) is not None]
        self._is_whole = True

    def run(self, progress: Progress | None) -> PublishedReport:
        """Everything, or up to the first file that is missing."""
        self._checked["signatures"] = sum(who.startswith("key") for who in self._vouchers)
        try:
            self._check_all(progress)
        except _Missing as missing:
            self._is_whole = False
            self._missing.append(f"{missing} is not there, or not as it must be")
        self._unchecked.append(
            f"what was recorded behind this checkpoint, from entry {self._head.size:,} on"
        )
        return PublishedReport(self._report(), tuple(self._forks))

    def _check_all(self, progress: Progress | None) -> None:
        """Step by step; on what does not hold nothing is built, and nothing more is read."""
        start = 0
        if not self._findings.count:
            self._check_root()
        if not self._findings.count:
            start = self._compare_kept()
        if not self._findings.count:
            self._check_tiles(start)
        if not self._findings.count:
            self._check_bundles(start, progress)
        else:
            self._unchecked.append(_STOPPED)

    def _check_root(self) -> None:
        if read_root(self._head.size, self._tree) != self._head.root:
            said = "the tiles do not lead to the root that the checkpoint names"
            self._findings.add("tree_node_bad", None, _CHECKPOINT, said)

    def _report(self) -> EvidenceReport:
        verdict = VERIFIED
        if self._findings.count:
            verdict = VIOLATION
        elif self._missing:
            is_short = self._is_named or not self._is_whole
            verdict = UNVERIFIED if is_short else CONSISTENT
        told = self._findings.report(self._checked, self._unchecked)
        return EvidenceReport(
            verdict, told.findings, told.finding_count, told.checked, told.unchecked,
            tuple(self._missing), tuple(self._vouchers), self._head, None,
        )  # fmt: skip

    def _read(self, path: str, bytes_max: int) -> bytes | None:
        return self._files.read(path, bytes_max)

    def _read_tile(self, path: str) -> bytes:
        data = self._read(path, _TILE_BYTES)
        if data is None and ".p/" in path:
            # A partial tile goes when the whole one is there: it begins with the same hashes.
            whole, _, width = path.partition(".p/")
            data = (self._read(whole, _TILE_BYTES) or b"")[: int(width) * 32]
        if not data:
            raise _Missing(path)
        return data

    def _hashes(self, tile: Tile) -> list[Digest]:
        """The hashes of a tile; the last one of each level is remembered."""
        if self._last.get(tile.level, ("",))[0] != tile.path:
            try:
                hashes = decode_tile(self._read_tile(tile.path), tile.width)
            except InputError:
                raise _Missing(tile.path) from None
            self._last[tile.level] = tile.path, hashes
        return self._last[tile.level][1]

    def _compare_kept(self) -> int:
        """That the log grew out of what was kept; from where on everything is new."""
        start, head = 0, self._head
        for pin in self._grown:
            claims = pin.claims
            if claims.size > head.size:
                said = (
                    f"a checkpoint kept elsewhere has {claims.size:,} entries, this one has "
                    f"{head.size:,}: it is an older one, or the log was cut"
                )
                self._missing.append(said)
            elif claims.size and (root := read_root(claims.size, self._tree)) != claims.root:
                self._say_fork(pin, root)
            else:
                start = max(start, claims.size)
                self._vouchers.append(f"pinned checkpoint of {claims.size:,} entries, grown")
        if start and not self._needs_key:
            # Whoever verifies kept the beginning himself: it needs no signature he knows.
            own = self._standing.missing
            self._missing = [said for said in self._missing if said not in own]
            if not self._standing.vouchers:
                self._unchecked.append(
                    f"who added the entries from {start:,} on: no key of yours signed the "
                    "checkpoint (--key)"
                )
        return start

    def _say_fork(self, pin: UnverifiedCheckpoint, root: Digest) -> None:
        size = pin.claims.size
        said = f"its first {size:,} entries are not those of a checkpoint kept elsewhere"
        self._findings.add("fork", None, _CHECKPOINT, said)
        proof = prove_consistency(size, self._head.size, self._tree)
        fork = find_fork(pin, self._found, root, proof)
        if fork is not None:
            self._forks.append(fork)

    def _check_tiles(self, start: int) -> None:
        """That each whole tile is what the tile above it says."""
        for tile in tiles_between(start, self._head.size):
            hashes = self._hashes(tile)
            self._checked["tiles"] += 1
            if tile.width < TILE_WIDTH:
                continue  # it stands under the root by itself
            above = self._tile_above(tile)
            top = complete_levels(hashes)[-1][0]
            if self._hashes(above)[tile.number % TILE_WIDTH] != top:
                index = tile.number << (tile.level + 1) * TILE_HEIGHT
                said = f"it is not the tile that {above.path} names"
                self._findings.add("tree_node_bad", index, tile.path, said)
                return

    def _tile_above(self, tile: Tile) -> Tile:
        nodes = self._head.size >> (tile.level + 1) * TILE_HEIGHT
        number = tile.number // TILE_WIDTH
        return Tile(tile.level + 1, number, min(TILE_WIDTH, nodes - number * TILE_WIDTH))

    def _check_bundles(self, start: int, progress: Progress | None) -> None:
        last_at, unknown = 0, 0
        for bundle in self._bundles(start):
            data = self._read_bundle(bundle)
            if data is None:
                if self._checked["entries"]:
                    raise _Missing(bundle.path)
                self._unchecked.append(_NO_ENTRIES)
                return
            hashes = self._hashes(Tile(0, bundle.number, bundle.width))
            try:
                entries = decode_bundle(data, bundle.width)
            except InputError as error:
                first = bundle.number * TILE_WIDTH
                self._findings.add("evidence_malformed", first, bundle.path, error.message)
                continue
            for offset, entry in enumerate(entries):
                index = bundle.number * TILE_WIDTH + offset
                if leaf_hash(entry) != hashes[offset]:
                    said = "it is not the entry that the log has here"
                    self._findings.add("entry_changed", index, bundle.path, said)
                    continue
                at, is_known = self._check_entry(index, entry, bundle.path, last_at)
                last_at, unknown = max(last_at, at), unknown + (not is_known)
                self._checked["entries"] += 1
            if progress is not None:
                progress(bundle.number * TILE_WIDTH, self._head.size)
        if unknown:
            self._unchecked.append(f"{unknown:,} entries of kinds this version does not know")
        if self._checked["entries"]:
            self._unchecked.append("the texts themselves, chains and seals: evidence files do that")

    def _bundles(self, start: int) -> Iterator[Bundle]:
        """Those to be read; none any more when enough of them do not hold."""
        for bundle in bundles_between(start, self._head.size):
            if self._findings.count >= _ENOUGH:
                self._unchecked.append(_STOPPED)
                return
            yield bundle

    def _read_bundle(self, bundle: Bundle) -> bytes | None:
        data = self._read(bundle.path, _BUNDLE_BYTES_MAX)
        if data is None and bundle.width < TILE_WIDTH:
            whole = self._read(Bundle(bundle.number, TILE_WIDTH).path, _BUNDLE_BYTES_MAX)
            return None if whole is None else _first_entries(whole, bundle.width)
        return data

    def _check_entry(self, index: int, raw: bytes, path: str, last_at: int) -> tuple[int, bool]:
        """When it was recorded, and whether its kind is known."""
        try:
            entry = decode_entry(raw)
        except InputError as error:
            self._findings.add("entry_not_canonical", index, path, error.message)
            return last_at, True
        check_order(index, entry, last_at, path, self._findings)
        return entry.at, entry.kind in BODIES


def _first_entries(whole: bytes, count: int) -> bytes:
    """The beginning of a bundle that has more entries than are wanted."""
    at = 0
    for _ in range(count):
        at += 2 + int.from_bytes(whole[at : at + 2], "big")
    return whole[:at]
