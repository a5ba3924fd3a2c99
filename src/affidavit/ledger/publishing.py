"""Publishing the log as tiles, so that anybody can check it without asking the ledger.

    a checkpoint is signed             everything below its size is what gets published
    the one already there is read      of this log, signed by it, no larger, and of this history
    entries, then tiles                only what it lacks; each is checked against the kept tree
    all of that on disk                then the edge of the tree is read back: it gives the root
    the checkpoint                     last, so that nobody sees one whose tiles are not there

A kill at any step leaves the checkpoint before, with all its tiles. Memory stays constant: one
bundle at a time.
"""

from __future__ import annotations

from typing import Final

from affidavit.core.canonical import decode_utf8
from affidavit.core.checkpoint import Checkpoint, check_checkpoint, parse_checkpoint
from affidavit.core.merkle import Digest, Node, complete_levels, leaf_hash, read_root
from affidavit.core.tile import (
    TILE_HEIGHT,
    TILE_WIDTH,
    Bundle,
    Tile,
    TiledTree,
    bundle_of,
    bundles_between,
    encode_bundle,
    encode_tile,
    tiles_between,
)
from affidavit.errors import CannotVerify, ConflictError, InputError, IntegrityViolation
from affidavit.ledger.checkpoints import LogTree, checkpoint
from affidavit.ledger.context import Context
from affidavit.ledger.keys import read_identity
from affidavit.ledger.ports import Publication, Reader
from affidavit.ledger.results import Published
from affidavit.ledger.settings import read_settings

CHECKPOINT: Final = "checkpoint"


def publish(context: Context, place: str) -> Published:
    """Bring a published log up to the committed one."""
    with context.publications.hold(place) as target:
        signed = checkpoint(context)
        head = signed.head
        old_size = _check_published(context, target, signed)
        with context.store.read() as reader:
            with_entries = read_settings(reader)["publish"] == "entries"
        files = _Files(context, target, head.size)
        # Also where nothing grew: an owner may have decided to publish entries too.
        files.write(old_size, _entries_from(target, old_size) if with_entries else None)
        target.sync()
        _check_edge(target, signed)
        note = signed.note.encode()
        if target.read(CHECKPOINT) != note:
            target.write(CHECKPOINT, note)
            target.sync()
        files.remove_partials(old_size)
        return Published(head.origin, head.size, head.root.hex(), target.place, files.count)


def _check_published(context: Context, target: Publication, signed: Checkpoint) -> int:
    """The size published before; that it was this very log is checked first."""
    note = target.read(CHECKPOINT)
    if note is None:
        return 0
    with context.store.read() as reader:
        keys = read_identity(reader).spans
    head = signed.head
    try:
        claims = parse_checkpoint(note).claims
    except InputError as error:
        raise CannotVerify(
            f"the checkpoint published in {target.place} cannot be read ({error.message})",
            hint="Look who wrote it; publish into an empty folder.",
        ) from None
    if claims.origin != head.origin:
        raise ConflictError(
            f"{target.place} is where {claims.origin} is published, not {head.origin}",
            code="ERR_OTHER_LOG",
            hint="Publish every log, and every name of a log, into a folder of its own.",
        )
    published = check_checkpoint(parse_checkpoint(note), list(keys)).head
    if published.size > head.size:
        _refuse(target, note, f"the ledger has {head.size:,} entries", "tail_removed")
    with context.store.read() as reader:
        if read_root(published.size, LogTree(reader)) != published.root:
            _refuse(target, note, "the ledger's history differs", "fork")
    return published.size


def _refuse(target: Publication, note: bytes, said: str, finding: str) -> None:
    raise IntegrityViolation(
        f"what is published in {target.place} is signed by this log, but {said}; nothing is "
        "published",
        hint="The ledger may be an older copy put back. Keep what is published: it is evidence.",
        finding=finding,
        published=decode_utf8(note, "checkpoint"),
    )


def _entries_from(target: Publication, old_size: int) -> int:
    """From which entry on bundles are lacking: from the first where they were not wanted before."""
    if old_size and target.read(bundle_of(old_size - 1, old_size).path) is not None:
        return old_size
    return 0


class _Files:
    """Writes what a published log of one size lacks."""

    def __init__(self, context: Context, target: Publication, size: int) -> None:
        self._store = context.store
        self._target = target
        self._size = size
        self.count = 0

    def write(self, old_size: int, entries_from: int | None) -> None:
        """Bundles and the tiles of hashes right above them, then the tiles further up."""
        start = old_size if entries_from is None else min(entries_from, old_size)
        for bundle in bundles_between(start, self._size):
            self._write_bundle(bundle, old_size, with_entries=entries_from is not None)
        for tile in tiles_between(old_size, self._size):
            if tile.level:
                with self._store.read() as reader:
                    hashes = reader.read_log_nodes(tile.nodes())
                    self._put_tile(reader, tile, hashes)

    def _write_bundle(self, bundle: Bundle, old_size: int, *, with_entries: bool) -> None:
        first = bundle.number * TILE_WIDTH
        with self._store.read() as reader:
            entries = [entry for _, entry in reader.entries(first, first + bundle.width)]
            if len(entries) != bundle.width:
                raise IntegrityViolation(f"entries are missing from the log behind {first}")
            if with_entries:
                self._put(bundle.path, encode_bundle(entries))
            if first + bundle.width > old_size:
                tile = Tile(0, bundle.number, bundle.width)
                self._put_tile(reader, tile, [leaf_hash(entry) for entry in entries])

    def _put_tile(self, reader: Reader, tile: Tile, hashes: list[Digest]) -> None:
        if tile.width == TILE_WIDTH:
            # An entry that was changed behind the ledger's back must not be published.
            above = Node((tile.level + 1) * TILE_HEIGHT, tile.number)
            if reader.read_log_nodes([above]) != complete_levels(hashes)[-1]:
                raise IntegrityViolation(
                    f"entries below {tile.path} are not the ones that were recorded; nothing more "
                    "is published",
                    hint="Keep the file as it is; `affidavit verify` says more.",
                )
        self._put(tile.path, encode_tile(hashes))

    def _put(self, path: str, data: bytes) -> None:
        there = self._target.read(path)
        if there is not None and there != data:
            raise IntegrityViolation(
                f"{self._target.place}/{path} is not what this log has there; nothing more is "
                "published",
                hint="It was changed, or is of another log. Take it away and publish again, or "
                "publish into an empty folder.",
                path=path,
            )
        if there is None:
            self.count += 1
        self._target.write(path, data)

    def remove_partials(self, old_size: int) -> None:
        """What a reader of the older checkpoint finds in whole tiles from now on."""
        whole = self._size - self._size % TILE_WIDTH
        for bundle in bundles_between(old_size, whole):
            self._target.remove_partials(bundle.path)
        for tile in tiles_between(old_size, self._size):
            if tile.width == TILE_WIDTH:
                self._target.remove_partials(tile.path)


def _check_edge(target: Publication, signed: Checkpoint) -> None:
    """That the tiles as they are now on disk lead to the root that was signed."""

    def read(path: str) -> bytes:
        return target.read(path) or b""

    head = signed.head
    if read_root(head.size, TiledTree(head.size, read)) != head.root:
        raise IntegrityViolation(
            f"the tiles in {target.place} do not lead to the root that was signed",
            hint="Keep the folder as it is and look who else writes there.",
        )
