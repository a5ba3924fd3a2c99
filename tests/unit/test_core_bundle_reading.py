"""Reading an evidence file in pieces: wherever one ends, the same is read and nothing slips by."""

from __future__ import annotations

import pytest

from affidavit.core import archive, bundle_reading
from affidavit.core.archive import encode_archive
from affidavit.core.bundle_reading import BundleReader
from affidavit.errors import InputError
from affidavit.verify.evidence import verify_evidence
from tamper.evidence_kit import ENTRIES, TRUST, ForgedLog, Opened, judge, read_whole, session_file

SESSION = session_file(ForgedLog(ENTRIES), erased=True)
MANIFEST, PART, LINES = "manifest.json", "sessions/1.json", "entries.jsonl"


class Stretches:
    """Bytes of which somebody counts what is asked for at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.largest = 0

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, stretch: slice) -> bytes:
        found = self._data[stretch]
        self.largest = max(self.largest, len(found))
        return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 63, 64, 65, 500, 4_096])
def test_where_a_piece_ends_means_nothing(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole, report = read_whole(SESSION), judge(SESSION)
    monkeypatch.setattr(archive, "PIECE_BYTES", size)
    monkeypatch.setattr(archive, "_WINDOW_BYTES", size)
    assert read_whole(SESSION) == whole
    assert judge(SESSION) == report
    assert report.verdict == "verified"


def test_no_more_is_asked_for_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(archive, "_WINDOW_BYTES", 500)
    source = Stretches(SESSION)
    assert verify_evidence(source, TRUST).verdict == "verified"
    assert source.largest <= 1_500  # a proof is read whole
    assert len(source) > 15_000


def read_all(files: dict[str, bytes]) -> None:
    bundle = BundleReader(encode_archive(files))
    list(bundle.find_changed())
    for start in bundle.sessions:
        list(bundle.records(start))
    for lines in (bundle.entries(), bundle.payloads(), bundle.proofs()):
        list(lines)


RECORD = b'{"index":2,"path":['
ODD = {
    "a list without an end": (PART, b'],"root"', b',"root"'),
    "two commas": (PART, b'},{"index":3', b'},,{"index":3'),
    "a comma at the end": (PART, b']}],"root"', b']},],"root"'),
    "a comma at the beginning": (PART, b'"records":[{', b'"records":[,{'),
    "a space": (PART, b'},{"index":3', b'}, {"index":3'),
    "an index with a zero before": (PART, RECORD, RECORD.replace(b"2", b"02")),
    "an index beyond 2^53": (PART, RECORD, RECORD.replace(b"2", b"9007199254740993")),
    "a hash in capitals": (PART, RECORD + b'"', RECORD + b'"A'),
    "records twice": (PART, b'"records":[', b'"records":[],"records":['),
    "no records": (PART, b'"records":[', b'"recordz":['),
    "something behind": (PART, b'"whole":true}', b'"whole":true}\n'),
    "a file listed twice": (MANIFEST, b'{"files":{', b'{"files":{"checkpoint":"%s",' % (b"0" * 64)),
    "files that are none": (MANIFEST, b'{"files":{', b'{"files":{"a b":"",'),
    "no files": (MANIFEST, b'{"files":{', b'{"filez":{'),
    "a line that is empty": (LINES, b"\n", b"\n\n"),
    "a line that is no object": (LINES, b"\n", b"\n[]\n"),
    "no newline at the end": (LINES, b"}\n", b"}\n{"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("piece", [5, 1 << 20])
def test_a_list_of_another_shape_is_refused_with_its_file(
    monkeypatch: pytest.MonkeyPatch, name: str, piece: int
) -> None:
    monkeypatch.setattr(archive, "PIECE_BYTES", piece)
    place, before, after = ODD[name]
    files = Opened(SESSION).files
    assert before in files[place]
    files[place] = files[place].replace(before, after, 1)
    if place != MANIFEST:
        opened = Opened(SESSION)
        opened.files = files
        files = Opened(opened.sealed()).files
    with pytest.raises(InputError) as caught:
        read_all(files)
    assert caught.value.field == place


@pytest.mark.parametrize(("count", "is_read"), [(63, True), (64, False)])
def test_a_path_has_no_more_hashes_than_a_log_has_levels(count: int, *, is_read: bool) -> None:
    opened = Opened(SESSION)
    opened.change_json(PART, lambda part: part["records"][0].update(path=["0" * 64] * count))
    files = Opened(opened.sealed()).files
    if is_read:
        read_all(files)
        return
    with pytest.raises(InputError) as caught:
        read_all(files)
    assert caught.value.field == PART


def test_what_must_be_small_is_not_read_when_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("policy.txt", "_PLAIN_BYTES_MAX"), (LINES, "ENTRY_LINE_BYTES_MAX"),
                        ("payloads.jsonl", "LINE_BYTES_MAX"), (PART, "_AROUND_BYTES_MAX"),
                        ("proofs/1.tlog-proof", "_PROOF_BYTES_MAX")):  # fmt: skip
        with monkeypatch.context() as small:
            small.setattr(bundle_reading, limit, 20)
            small.setattr(archive, "PIECE_BYTES", 10)
            with pytest.raises(InputError) as caught:
                read_all(Opened(SESSION).files)
            assert caught.value.field in (name, "checkpoint", MANIFEST), name


FIELDS = ",".join(f'"f{number:05}":{{"withheld":true}}' for number in range(10_000))
NOTHING = ",".join(["[]"] * 100_000)
HUNGRY = {
    "more fields than an entry has": ("payloads.jsonl", f'{{"fields":{{{FIELDS}}},"index":1}}'),
    "a list of nothing": ("payloads.jsonl", f'{{"fields":[{NOTHING}],"index":1}}'),
    "a list for an entry": (LINES, f'{{"entry":[{NOTHING}],"index":1}}'),
    "texts without an end": ("payloads.jsonl", '"' + '","' * 20_000),
    "more text than an entry has": (
        "payloads.jsonl", f'{{"fields":{{"intent":{{"text":"{"a" * (65 << 20)}"}}}},"index":1}}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HUNGRY)
def test_a_line_that_would_take_much_memory_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Of some bytes of JSON one may make thirty times as many of memory."""

    def never(text: str, _: str) -> None:
        assert len(text) < 10_000, "it was read"
        raise InputError("short, and not of interest")

    name, line = HUNGRY[what]
    files = Opened(SESSION).files
    bundle = BundleReader(encode_archive({**files, name: line.encode() + b"\n"}))
    monkeypatch.setattr(bundle_reading, "parse_json", never)
    with pytest.raises(InputError) as caught:
        list(bundle.payloads() if name != LINES else bundle.entries())
    assert caught.value.field == name


def test_a_text_full_of_commas_and_quotes_is_read() -> None:
    text = 'a "quoted", \\ text, and \n' * 200_000
    opened = Opened(SESSION)
    opened.change_line(
        "payloads.jsonl", 4, lambda line: line["fields"].update(content={"text": text})
    )
    found = dict(BundleReader(opened.sealed()).payloads())
    assert found[4]["content"].text == text


def test_a_session_that_says_more_than_a_session_can_is_refused_unread() -> None:
    opened = Opened(SESSION)
    opened.change_json(PART, lambda part: part["metadata"].update(caller=[[]] * 40_000))
    with pytest.raises(InputError, match="beside a list") as caught:
        BundleReader(opened.sealed())
    assert caught.value.field == PART
