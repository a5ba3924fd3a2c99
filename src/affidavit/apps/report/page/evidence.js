// The parts of an evidence file, read. Whatever cannot be read becomes a finding in the report and
// is left out; nothing is repaired. What is read is claims: checking is in check.js.

const ENTRY_BYTES_MAX = 65535;
const THOUGHT = "thought.recorded";
const METADATA = [
  "caller", "continues", "ledger_id", "proof_grade", "session_id", "started_at", "task_id",
];

const SESSION_KEYS = [
  "entries_root", "entry_count", "genesis", "metadata", "record_count", "records", "root",
  "seal_index", "session_id", "whole",
];
const PART = /^(policy\.txt|checkpoint|(entries|payloads)\.jsonl)$/;
const PROOF_PART = /^proofs\/(0|[1-9][0-9]*)\.tlog-proof$/;
const SESSION_PART = /^sessions\/(0|[1-9][0-9]*)\.json$/;

// What a check says of one entry. `broken` lists what does not hold, `open` what was not checked.
class EntryReport {
  constructor(index) {
    this.index = index;
    this.held = [];
    this.broken = [];
    this.open = [];
    this.done = false;
  }

  get state() {
    if (this.broken.length > 0) return "broken";
    if (!this.done) return "waiting";
    return this.open.length > 0 ? "open" : "held";
  }
}

// Everything found. A finding names its code, its entry (or null) and what was said there.
class Report {
  constructor() {
    this.findings = [];
    this.entries = new Map();
    this.lines = [];
  }

  entry(index) {
    if (!this.entries.has(index)) this.entries.set(index, new EntryReport(index));
    return this.entries.get(index);
  }

  find(code, index, place, message) {
    this.findings.push({ code, index, place, message });
    if (index !== null) this.entry(index).broken.push(`${message} (${code}, ${place})`);
  }

  has(place) {
    return this.findings.some((finding) => finding.place === place);
  }
}

async function readEvidence(parts, report) {
  const evidence = {
    parts,
    manifest: readPart(parts, "manifest.json", report, readManifest),
    checkpoint: readPart(parts, "checkpoint", report, parseCheckpoint),
    entries: [],
    payloads: new Map(),
    proofs: new Map(),
    session: null,
  };
  await readLines(parts, "entries.jsonl", report, ["entry", "index"], (line) => {
    evidence.entries.push(readEntry(line, report));
  });
  await readLines(parts, "payloads.jsonl", report, ["fields", "index"], (line) => {
    evidence.payloads.set(line.index, line.fields);
    if (!isObject(line.fields) || Object.keys(line.fields).length === 0) {
      report.find("payload_mismatch", line.index, "payloads.jsonl", "a line without a payload");
    }
  });
  evidence.byIndex = new Map(evidence.entries.map((entry) => [entry.index, entry]));
  await readProofs(evidence, report);
  findStrays(evidence, report);
  readSession(evidence, report);
  return evidence;
}

function readPart(parts, place, report, read) {
  if (!Object.hasOwn(parts, place)) {
    report.find("entry_missing", null, place, "the part is missing");
    return null;
  }
  try {
    return read(parts[place], place);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report.find("entry_not_canonical", null, place, error.message);
    return null;
  }
}

function readManifest(text, place) {
  const value = readCanonical(text, place);
  const keys = ["files", "origin", "root", "scope", "size", "v"];
  const shaped = hasKeys(value, keys) && hasKeys(value.scope, ["id", "kind"]);
  if (!shaped || value.v !== 1 || !isObject(value.files)) {
    throw new Refused("not a manifest of version 1");
  }
  return value;
}

// A .jsonl part: a canonical object a line, in the order of the indexes.
async function readLines(parts, place, report, keys, take) {
  const lines = readPart(parts, place, report, (text) => {
    if (text !== "" && !text.endsWith("\n")) throw new Refused("does not end in a line feed");
    return text === "" ? [] : text.slice(0, -1).split("\n");
  });
  let before = -1;
  await inGroups(lines ?? [], (text, number) => {
    const here = `${place} line ${number + 1}`;
    const line = readPart({ [here]: text }, here, report, readCanonical);
    if (line === null) return;
    if (!hasKeys(line, keys) || !isCount(line.index)) {
      report.find("entry_not_canonical", null, here, "not a line of this part");
      return;
    }
    if (line.index <= before) {
      report.find("index_gap", line.index, here, `stands after entry ${before}`);
    }
    before = line.index;
    take(line);
  });
}

// Long lists are read with pauses, so that the page stays usable.
async function inGroups(items, take) {
  for (let at = 0; at < items.length; at++) {
    take(items[at], at);
    if (at % 1000 === 999) await pause();
  }
}

function readEntry(line, report) {
  const entry = { index: line.index, text: String(line.entry), kind: null, body: {}, src: {} };
  try {
    const value = readCanonical(entry.text, "the entry");
    const shaped = hasKeys(value, ["at", "body", "kind", "src", "v"]) && value.v === 1;
    if (!shaped || !isCount(value.at) || !isObject(value.body) || !isObject(value.src)) {
      throw new Refused("not an entry of version 1");
    }
    const told = hasKeys(value.src, ["auth", "client", "via"]);
    if (typeof value.kind !== "string" || !told || !isRestricted(value)) {
      throw new Refused("the entry holds what an entry may not hold");
    }
    if (utf8(entry.text).length > ENTRY_BYTES_MAX) throw new Refused("the entry is too long");
    return { ...entry, ...value };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report.find("entry_not_canonical", line.index, "entries.jsonl", error.message);
    return entry;
  }
}

async function readProofs(evidence, report) {
  await inGroups(Object.keys(evidence.parts), (place) => {
    const match = PROOF_PART.exec(place);
    if (!match) return;
    const index = Number(match[1]);
    try {
      const proof = parseProof(evidence.parts[place]);
      // Nobody signed what the format calls extra; an evidence file has none.
      if (proof.hasExtra) throw new Refused("it has an extra line");
      evidence.proofs.set(index, proof);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      report.find("entry_changed", index, place, `the proof cannot be read: ${error.message}`);
    }
  });
}

// What is in the file and belongs to no entry of it, or is no part of evidence at all.
function findStrays(evidence, report) {
  const { parts, byIndex, payloads, proofs } = evidence;
  for (const name of Object.keys(parts)) {
    const isKnown = [PART, PROOF_PART, SESSION_PART].some((pattern) => pattern.test(name));
    if (name !== "manifest.json" && !isKnown) {
      report.find("entry_changed", null, name, "is no part of evidence");
    }
  }
  for (const [place, found] of Object.entries({ "payloads.jsonl": payloads, proofs })) {
    for (const index of found.keys()) {
      if (!byIndex.has(index)) {
        report.find("entry_missing", null, place, `speaks of entry ${index}, which is not here`);
      }
    }
  }
}

function readSession(evidence, report) {
  const places = Object.keys(evidence.parts).filter((place) => place.startsWith("sessions/"));
  if (places.length !== 1 || !SESSION_PART.test(places[0])) {
    const said = `${places.length} sessions are described, one was expected`;
    report.find("entry_missing", null, "sessions/", said);
    return;
  }
  const value = readPart(evidence.parts, places[0], report, readCanonical);
  if (value === null) return;
  const shaped = hasKeys(value, SESSION_KEYS) && Array.isArray(value.records);
  if (!shaped || !value.records.every(isRecordPath)) {
    report.find("entry_not_canonical", null, places[0], "not the description of a session");
    return;
  }
  const start = Number(SESSION_PART.exec(places[0])[1]);
  evidence.session = { ...value, place: places[0], start };
}

function isRecordPath(record) {
  return (
    hasKeys(record, ["index", "path"]) && isCount(record.index) &&
    Array.isArray(record.path) && record.path.every(isDigest)
  );
}

// The payload fields of a body: a commitment each; a thought's content is bound by its hashes.
function payloadFields(entry) {
  if (entry.kind === THOUGHT) return ["content"];
  return Object.keys(entry.body).filter((key) => isCommitment(entry.body[key]));
}

function isCommitment(value) {
  return hasKeys(value, ["bytes", "commit"]) && isCount(value.bytes) && isDigest(value.commit);
}
