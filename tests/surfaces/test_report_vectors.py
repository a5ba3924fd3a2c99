"""The script of the page gives the answers that others' vectors give, as the browser runs it."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest

from affidavit.apps.report.page_file import checking_script
from affidavit.core.ed25519 import is_signature
from affidavit.core.note import parse_verifier_key
from surfaces.sworn import LOG

DATA = Path(__file__).parents[1] / "vectors" / "data"


def load(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(browser, tmp_path_factory):
    """Calls functions of the script; an error comes back as its message."""
    file = tmp_path_factory.mktemp("script") / "script.html"
    file.write_text("<!DOCTYPE html><title>x</title>", encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.add_script_tag(content=checking_script())
    yield lambda code, *values: page.evaluate(
        f"async (values) => Promise.all(values.map(async (v) => {{"
        f" try {{ return {code} }} catch (error) {{"
        f" return {{ refused: error instanceof Refused, said: String(error) }} }} }}))",
        list(values),
    )
    page.close()


def test_canonical_json(run):
    cases = sorted((DATA / "jcs-rfc8785" / "input").iterdir())
    found = run("canonicalize(JSON.parse(v))", *(case.read_text("utf-8") for case in cases))
    wanted = [
        (DATA / "jcs-rfc8785" / "output" / case.name).read_text("utf-8").strip() for case in cases
    ]
    assert [json.loads(text) for text in found] == [json.loads(text) for text in wanted]
    assert found == wanted
    args = load("affidavit-v1/args.json")
    assert run("canonicalize(v)", *(case["arguments"] for case in args)) == [
        case["jcs"] for case in args
    ]


def test_canonical_numbers(run):
    pairs = load("jcs-rfc8785/numbers.json")["hex_ieee754_to_json"]
    numbers = [struct.unpack(">d", bytes.fromhex(bits))[0] for bits, _ in pairs]
    texts = [repr(number) for number in numbers]
    found = run("canonicalize(Number(v))", *texts)
    assert [text if isinstance(text, str) else None for text in found] == [
        text for _, text in pairs
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}', '{"b":1,"a":2}', '{ "a":1}', '{"a":1.0}', '{"a":9007199254740993}',
        '{"a":9007199254740992}', '{"a":1e3}', '{"a":"\\u0041"}', '{"a":"\\ud800"}', "[1,]",
        "nul", "", "[" * 65 + "]" * 65, '{"a":-0}', '{"a":0.5}',
    ],
)  # fmt: skip
def test_what_is_not_canonical_is_refused(run, text):
    [found] = run("readCanonical(v, 'text')", text)
    assert found["refused"] is True, found


def test_trees_and_inclusion_proofs(run):
    roots = load("rfc6962-merkle/roots.json")
    inputs = [bytes.fromhex(text) for text in roots["leaf_inputs_hex"]]
    code = "treeRoot(await Promise.all(v.map((x) => sha256(join(LEAF, fromHex(x))))))"
    sizes = [[leaf.hex() for leaf in inputs[:size]] for size in range(1, 9)]
    assert run(code, *sizes) == roots["root_hashes_hex_by_size_1_to_8"]
    assert run("treeRoot([])", None) == [roots["empty_root_hex"]]
    cases = load("rfc6962-merkle/inclusion.json").values()

    def hex_of(text):
        return base64.b64decode(text or "").hex()

    values = [
        [hex_of(case["root"]), case["leafIdx"], case["treeSize"], hex_of(case["leafHash"]),
         [hex_of(one) for one in case["proof"] or []]]
        for case in cases
    ]  # fmt: skip
    found = run("leadsTo(...v)", *values)
    assert [answer is True for answer in found] == [not case["wantErr"] for case in cases]
    assert found.count(True) > 4


def test_every_answer_of_ed25519_is_that_of_the_program(run):
    vectors = load("ed25519-cctv/ed25519vectors.json")
    values = [[one["key"], one["sig"], one["msg"]] for one in vectors]
    found = run(
        "await isSigned(v[2], {value: fromHex(v[1])}, {bytes: fromHex(v[0])})", *values
    )  # fmt: skip
    assert set(map(str, found)) == {"True", "False"}
    assert found.count(True) == 86
    for one, answer in zip(vectors, found, strict=True):
        key, value = bytes.fromhex(one["key"]), bytes.fromhex(one["sig"])
        assert answer == is_signature(key, value, one["msg"].encode()), one


def test_notes_and_keys(run):
    notes = load("signed-note-golang/note.json")
    texts = [*notes["vkeys"].values(), LOG["vkey"]]
    found = run("(({name, id, bytes}) => [name, id, toHex(bytes)])(await parseKey(v))", *texts)
    keys = [parse_verifier_key(text) for text in texts]
    assert found == [[key.name, key.id.hex(), key.public.hex()] for key in keys]
    assert all(one["refused"] for one in run("await parseKey(v)", *notes["bad_vkeys"]))
    code = (
        "await (async () => { const note = parseNote(v[0]); const answers = [];"
        " const keys = await Promise.all(v[1].map(parseKey));"
        " for (const line of note.signatures) for (const key of keys)"
        " if (key.name === line.name && key.id === line.id)"
        " answers.push(await isSigned(note.text, line, key)); return answers })()"
    )
    good = [[case["msg"], case["verifiers"]] for case in notes["open_ok"]]
    for case, answers in zip(good, run(code, *good), strict=True):
        assert answers, case
        assert all(answer is True for answer in answers), case
    bad = [[one["msg"], one.get("verifiers", [])] for one in notes["open_bad"] if "msg" in one]
    for case, answers in zip(bad, run(code, *bad), strict=True):
        twice = len(set(case[1])) < len(case[1])
        assert twice or "refused" in answers or answers == [] or False in answers, case


def test_checkpoints_and_proofs_of_a_whole_log(run):
    notes = LOG["checkpoints_by_size"]
    found = run("(({origin, size, root}) => [origin, size, root])(parseCheckpoint(v))", *notes)
    roots = enumerate(LOG["roots_hex_by_size"])
    assert found == [[LOG["origin"], size, root] for size, root in roots]
    code = (
        "await (async () => { const proof = parseProof(v[1]); const head = parseCheckpoint("
        "proof.checkpoint); return leadsTo(head.root, proof.index, head.size,"
        " await leafHash(v[0]), proof.path) })()"
    )
    pairs = list(zip(LOG["entries"], LOG["log_proofs_at_full_size"], strict=True))
    assert run(code, *pairs) == [True] * len(pairs)
    swapped = list(zip(LOG["entries"][::-1], LOG["log_proofs_at_full_size"], strict=True))
    assert not any(run(code, *swapped))


def test_proofs_in_text(run):
    vectors = load("tlog-proof/tlog_proof.json")
    wanted = [case["want"] for case in vectors["marshal"]]
    found = run("parseProof(v)", *wanted)
    assert [one["index"] for one in found] == [case["index"] for case in vectors["marshal"]]
    assert [one["checkpoint"] for one in found] == [
        case["checkpoint"] for case in vectors["marshal"]
    ]
    assert [len(one["path"]) for one in found] == [
        len(case["hashes"]) for case in vectors["marshal"]
    ]
    assert all(one.get("refused") for one in run("parseProof(v)", *vectors["must_refuse"]))
