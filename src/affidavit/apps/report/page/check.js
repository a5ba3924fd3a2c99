// The check of one session's evidence, in the order of the format: the signature, then every entry
// (its place in the log, its texts, its links), then what the seal says of all of them, the files
// last. Entries are taken in groups with a pause between, so that the page stays usable.

const GROUP = 250;
const AFTER_SEAL = new Set([
  "session.ended", "capture.stopped", "tool_call.completed", "tool_call.failed", "tool_call.late",
]);

async function checkEvidence(evidence, report, tell) {
  const walk = new Walk(evidence, report);
  walk.signature = await checkSignature(evidence, report);
  await walk.begin();
  for (let at = 0; at < evidence.entries.length; at += GROUP) {
    const group = evidence.entries.slice(at, at + GROUP);
    const found = await Promise.all(group.map((entry) => walk.compute(entry)));
    group.forEach((entry, place) => walk.judge(entry, found[place]));
    tell(group, at + group.length);
    await pause();
  }
  await checkSeal(walk);
  const files = await checkFiles(evidence, report);
  report.lines = sumUp(walk, files);
  tell(walk.seal === null ? [] : [walk.seal], evidence.entries.length);
}

// "held", "broken", or why it was not checked.
async function checkSignature(evidence, report) {
  const { checkpoint, manifest } = evidence;
  if (checkpoint === null) return { state: "broken", said: "there is no checkpoint to check" };
  for (const key of ["origin", "size", "root"]) {
    if (manifest !== null && manifest[key] !== checkpoint[key]) {
      report.find("entry_changed", null, "manifest.json", `${key} is not the checkpoint's`);
    }
  }
  const keys = await readKeys(evidence, report);
  const states = [];
  for (const line of checkpoint.note.signatures) {
    const key = keys.find((one) => one.name === line.name && one.id === line.id);
    if (key !== undefined) states.push(await isSigned(checkpoint.note.text, line, key));
  }
  evidence.keys = keys;
  return judgeSignature(states, report);
}

async function readKeys(evidence, report) {
  const text = readPart(evidence.parts, "policy.txt", report, (policy) => policy) ?? "";
  try {
    const keys = await parsePolicy(text);
    return keys.filter((key) => key.name === evidence.checkpoint.origin);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report.find("signature_bad", null, "policy.txt", error.message);
    return [];
  }
}

function judgeSignature(states, report) {
  if (states.includes(false)) {
    const said = "the signature does not fit the checkpoint";
    report.find("signature_bad", null, "checkpoint", said);
    return { state: "broken", said };
  }
  if (states.includes(null)) {
    return { state: "open", said: "not checked: this browser has no Ed25519" };
  }
  if (states.length === 0) {
    return { state: "open", said: "not checked: no key that signed it comes with this file" };
  }
  const signers = states.length === 1 ? "the key" : `the ${states.length} keys`;
  return { state: "held", said: `the checkpoint is signed by ${signers} below` };
}

// Where the chains and the session stand while entries go by in log order.
class Walk {
  constructor(evidence, report) {
    this.evidence = evidence;
    this.report = report;
    this.counts = { proved: 0, texts: 0, erased: 0, withheld: 0, task: 0, outside: 0, session: 0 };
    this.tasks = new Map();
    this.hashes = new Set();
    this.thoughts = [];
    this.named = [];
    this.chain = null;
    this.at = -1;
    this.seal = null;
    this.sealHolds = false;
    this.started = null;
    this.ended = null;
    this.erasers = new Set();
    this.changed = false;
    this.late = 0;
    this.unsure = false;
    this.unreadable = 0;
    this.paths = new Map((evidence.session?.records ?? []).map((one) => [one.index, one.path]));
  }

  // The seal comes first: whether it is in the log decides whether its root is worth comparing.
  async begin() {
    const index = this.evidence.session?.seal_index;
    const found = this.evidence.byIndex.get(index);
    if (found === undefined || found.kind !== "session.sealed") return;
    this.seal = found;
    this.sealHolds = (await this.checkInLog(found, await leafHash(found.text))) === "";
  }

  // Everything about one entry that needs hashing, and nothing that depends on the one before.
  async compute(entry) {
    const leaf = await leafHash(entry.text);
    const found = { leaf, inLog: await this.checkInLog(entry, leaf) };
    found.texts = await Promise.all(
      payloadFields(entry).map((name) => this.checkText(entry, name)),
    );
    if (entry.kind === THOUGHT) await this.computeThought(entry, found);
    if (entry.kind === "session.started") found.genesis = await hashOf(pick(entry.body, METADATA));
    return found;
  }

  // "" where the entry is in the log, else what is wrong; null where that cannot be told.
  async checkInLog(entry, leaf) {
    const { checkpoint, proofs, parts } = this.evidence;
    if (checkpoint === null || this.signature.state === "broken") return null;
    const proof = proofs.get(entry.index);
    if (proof === undefined) return "there is no proof that it is in the log";
    if (proof.index !== entry.index) return `its proof speaks of entry ${proof.index}`;
    if (proof.checkpoint !== parts.checkpoint) return "its proof leads to another checkpoint";
    const holds = await leadsTo(checkpoint.root, entry.index, checkpoint.size, leaf, proof.path);
    return holds ? "" : "its bytes are not those that were recorded, or its proof was changed";
  }

  async checkText(entry, name) {
    const field = this.evidence.payloads.get(entry.index)?.[name];
    const keys = isObject(field) ? Object.keys(field).sort().join() : "";
    if (keys === "withheld" && field.withheld === true) return { name, state: "withheld" };
    if (keys === "erased" && isCount(field.erased)) {
      return { name, state: "erased", by: field.erased };
    }
    // Only a record's content goes without salt: its hashes have none.
    const isShown = keys === (entry.kind === THOUGHT ? "text" : "salt,text");
    if (!isShown || typeof field.text !== "string") return { name, state: "lost" };
    if (entry.kind === THOUGHT) return { name, state: "shown", text: field.text };
    const commitment = entry.body[name];
    const bytes = utf8(field.text);
    const salt = readSalt(field.salt);
    const holds =
      salt !== null && bytes.length === commitment.bytes &&
      (await sha256(join(salt, bytes))) === commitment.commit;
    return { name, state: holds ? "held" : "changed" };
  }

  async computeThought(entry, found) {
    const { body } = entry;
    const [content] = found.texts;
    if (isDigest(body.content_hash) && isDigest(body.parent_chain_hash)) {
      found.chain = await sha256(fromHex(body.content_hash + body.parent_chain_hash));
    }
    const path = this.paths.get(entry.index);
    if (this.seal !== null && this.sealHolds && path !== undefined) {
      const { root, record_count: size } = this.seal.body;
      found.inSeal = await leadsTo(root, body.session_seq, size, found.leaf, path);
    }
    if (content.state !== "shown") return;
    const said = { ...body, content: content.text };
    const names = ["content", "id", "prev_hash", "task_id", "timestamp", "type"];
    found.hash = await hashOf(pick(said, names));
    if (body.session_id !== null) {
      const bound = ["agent_id", "content", "id", "session_id", "task_id", "timestamp", "type"];
      found.contentHash = await hashOf(pick(said, bound));
    }
  }

  // What was computed, against what the entry says and where the chains stand.
  judge(entry, found) {
    const about = this.report.entry(entry.index);
    if (found.inLog === null) {
      about.open.push("its place in the log: the checkpoint itself does not hold");
    } else if (found.inLog !== "") {
      this.changed = true;
      this.report.find("entry_changed", entry.index, "log", found.inLog);
    } else {
      this.counts.proved += 1;
      about.held.push("in the log");
    }
    // A changed entry says nothing about those behind it.
    if (found.inLog === "") this.judgeTime(entry);
    if (entry.kind === null) {
      this.unsure = true;
      this.unreadable += 1;
    }
    for (const text of found.texts) this.judgeText(entry, text, about);
    this.judgeExtraTexts(entry);
    if (entry.kind === THOUGHT) judgeThought(this, entry, found, about);
    if (entry.body.session_id !== undefined) judgeSession(this, entry, found);
    about.done = true;
  }

  judgeTime(entry) {
    if (entry.kind !== null && entry.at < this.at) {
      this.report.find("time_backwards", entry.index, "log", "is older than the entry before it");
    }
    this.at = Math.max(this.at, entry.at ?? this.at);
  }

  judgeText(entry, text, about) {
    const tell = (code, said) =>
      this.report.find(code, entry.index, `payloads.jsonl ${text.name}`, said);
    if (text.state === "held") {
      this.counts.texts += 1;
      about.held.push(text.name);
    } else if (text.state === "changed") {
      tell("payload_mismatch", `${text.name} is not the text that was recorded`);
    } else if (text.state === "lost") {
      tell("payload_lost", `${text.name} is not here as a text, and nothing says why`);
    } else if (text.state === "withheld") {
      this.counts.withheld += 1;
      about.open.push(`${text.name}: withheld by whoever made this file`);
    } else if (text.state === "erased") {
      const erasure = this.evidence.byIndex.get(text.by);
      this.erasers.add(text.by);
      if (erases(erasure, entry.index, text.name)) {
        this.counts.erased += 1;
        about.open.push(`${text.name}: erased, as entry ${text.by} says`);
      } else {
        tell("erasure_unexplained", `no entry says that ${text.name} was erased`);
      }
    }
  }

  judgeExtraTexts(entry) {
    const fields = this.evidence.payloads.get(entry.index);
    const wanted = payloadFields(entry);
    if (!isObject(fields)) return;
    for (const name of Object.keys(fields)) {
      if (!wanted.includes(name)) {
        const said = `${name} is a text that the entry does not speak of`;
        this.report.find("payload_mismatch", entry.index, "payloads.jsonl", said);
      }
    }
  }
}

function readSalt(text) {
  try {
    const salt = fromBase64(String(text), "salt");
    return salt.length === 32 ? salt : null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return null;
  }
}

function erases(erasure, index, name) {
  const fields = erasure?.kind === "payload.erased" ? erasure.body.fields : null;
  return (
    Array.isArray(fields) && fields.some((field) => field?.[0] === index && field?.[1] === name)
  );
}

function pick(value, names) {
  const picked = {};
  for (const name of names) picked[name] = value[name] ?? null;
  return picked;
}
