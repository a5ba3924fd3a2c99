// The links of one entry: the task chain, the session chain, and what may name a session when.
// A record is compared with what the one before it says and with what that one's hash really is:
// so a changed record is told once, at itself, and not again at the one behind it.

const ZERO_HASH = "0".repeat(64);

function judgeThought(walk, entry, found, about) {
  const { body } = entry;
  judgeContent(walk, entry, found, about);
  judgeTaskLink(walk, entry, found, about);
  if (body.session_id !== null) judgeSessionLink(walk, entry, found, about);
  if (found.inSeal === true) about.held.push("in the seal");
  if (found.inSeal === false) {
    const said = "its path does not lead to the root that was sealed";
    walk.report.find("seal_mismatch", entry.index, "seal", said);
  }
}

function judgeContent(walk, entry, found, about) {
  if (found.hash === undefined) return;
  const { body } = entry;
  const wrong = [];
  if (found.hash !== body.hash) wrong.push("hash");
  if (found.contentHash !== undefined && found.contentHash !== body.content_hash) {
    wrong.push("content_hash");
  }
  if (wrong.length === 0) {
    walk.counts.texts += 1;
    about.held.push("content");
  } else {
    const said = `text, author, type or time is not what was recorded: ${wrong.join(", ")} differs`;
    walk.report.find("payload_mismatch", entry.index, "payloads.jsonl content", said);
  }
}

function judgeTaskLink(walk, entry, found, about) {
  const { task_id: task, prev_hash: link, hash } = entry.body;
  const before = walk.tasks.get(task);
  const elsewhere = link === ZERO_HASH ? before !== undefined : walk.hashes.has(link);
  if (before === undefined ? link === ZERO_HASH : before.hashes.includes(link)) {
    walk.counts.task += 1;
    about.held.push("task chain");
  } else if (elsewhere && before?.unsure && found.inLog === "") {
    about.open.push("task chain: an entry before it does not hold");
  } else if (elsewhere) {
    const said = "does not link to the record of this task before it";
    walk.report.find("chain_broken", entry.index, "task chain", said);
  } else {
    // Another session, or none, may have worked on the same task in between.
    walk.counts.outside += 1;
  }
  walk.tasks.set(task, { hashes: [hash, found.hash], unsure: isChanged(found) });
  for (const one of [hash, found.hash]) walk.hashes.add(one);
}

// Whether an entry is known not to be what was recorded.
function isChanged(found) {
  return found.inLog !== "" && found.inLog !== null;
}

function judgeSessionLink(walk, entry, found, about) {
  const { parent_chain_hash: parent, chain_hash: stated, session_seq: seq } = entry.body;
  const expected = walk.chain === null ? 0 : walk.chain.seq + 1;
  const follows = seq === expected && (walk.chain === null || walk.chain.hashes.includes(parent));
  const tell = (code, said) => walk.report.find(code, entry.index, "session chain", said);
  if (!follows && walk.unsure && found.inLog === "") {
    about.open.push("session chain: an entry before it does not hold");
  } else if (seq !== expected) {
    tell("entry_missing", `is record ${seq} of its session, ${expected} was to come`);
  } else if (!follows) {
    tell("chain_broken", "does not link to the record of this session before it");
  } else if (found.chain !== stated) {
    tell("chain_broken", "chain_hash is not that of its content and the record before it");
  } else {
    walk.counts.session += 1;
    about.held.push("session chain");
  }
  const known = isCount(seq) && (follows || found.inLog === "");
  walk.chain = { seq: known ? seq : expected, hashes: [stated, found.chain] };
  walk.unsure = isChanged(found);
  walk.thoughts.push({ entry, leaf: found.leaf });
}

// Behind its start, and not behind its end but for what may come late, and its seal.
function judgeEnd(walk, entry, tell) {
  const mayFollow = AFTER_SEAL.has(entry.kind) || entry.kind === "session.sealed";
  if (walk.started === null) {
    tell("chain_broken", "names a session that had not started");
  } else if (walk.ended !== null && (entry.kind === "session.ended" || !mayFollow)) {
    tell("chain_broken", `names a session that ended at entry ${walk.ended}`);
  }
  if (entry.kind === "session.ended") walk.ended ??= entry.index;
}

function judgeSession(walk, entry, found) {
  const { session } = walk.evidence;
  const name = entry.body.session_id;
  if (name === null || session === null) return;
  const tell = (code, said) => walk.report.find(code, entry.index, "session", said);
  if (name !== session.session_id) {
    tell("seal_mismatch", "names a session that this file is not about");
    return;
  }
  if (entry.kind === "session.started") {
    if (walk.started) tell("chain_broken", "the session started before");
    if (found.genesis !== entry.body.genesis) {
      tell("chain_broken", "the genesis is not that of the session's metadata");
    }
    walk.started = entry;
    walk.chain = { seq: -1, hashes: [entry.body.genesis, found.genesis] };
  }
  const sealed = walk.seal !== null && entry.index > walk.seal.index;
  if (sealed && !AFTER_SEAL.has(entry.kind)) {
    tell("seal_mismatch", `names a session that was sealed at entry ${walk.seal.index}`);
  } else {
    judgeEnd(walk, entry, tell);
  }
  if (walk.seal === null || entry.index < walk.seal.index) {
    walk.named.push({ entry, leaf: found.leaf });
  }
  if (sealed) walk.late += 1;
}
