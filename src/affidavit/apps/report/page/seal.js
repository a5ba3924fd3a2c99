// What speaks of all entries together: the seal, the session's description, the list of files.
// Then the few lines that sum everything up.

async function checkSeal(walk) {
  const { evidence, report } = walk;
  const { session } = evidence;
  if (session === null) return;
  checkStart(walk);
  checkRecordList(walk);
  checkOthers(walk);
  if (session.seal_index === null) {
    if (evidence.entries.some((entry) => entry.kind === "session.sealed")) {
      report.find("seal_mismatch", null, session.place, "says there is no seal, but there is one");
    }
    checkUnsealed(walk);
    return;
  }
  if (walk.seal === null) {
    const said = `the seal, entry ${session.seal_index}, is not in this file`;
    report.find("entry_missing", null, session.place, said);
    return;
  }
  checkClaims(walk);
  await checkSealBody(walk);
}

function checkStart(walk) {
  const { session } = walk.evidence;
  const { started, report } = walk;
  if (started === null || started.index !== session.start) {
    const said = `entry ${session.start} does not start the session`;
    report.find("entry_missing", null, session.place, said);
    return;
  }
  const same =
    canonicalize(session.metadata ?? null) === canonicalize(pick(started.body, METADATA)) &&
    session.genesis === started.body.genesis;
  if (!same) {
    const said = "the session's metadata is not that of its start";
    report.find("seal_mismatch", started.index, session.place, said);
  }
  const scope = walk.evidence.manifest?.scope;
  if (session.whole !== true || scope?.kind !== "session" || scope.id !== session.session_id) {
    report.find("seal_mismatch", null, session.place, "this is not the whole of the session");
  }
}

function checkRecordList(walk) {
  if (walk.unreadable > 0) return;
  const { session } = walk.evidence;
  const listed = session.records.map((record) => record.index).join();
  if (listed !== walk.thoughts.map(({ entry }) => entry.index).join()) {
    const said = "lists other records than those in this file";
    walk.report.find("entry_missing", null, session.place, said);
  }
}

// What names no session is here only where it says what was erased.
function checkOthers(walk) {
  if (walk.unreadable > 0) return;
  for (const { index, kind, body } of walk.evidence.entries) {
    const isErasure = kind === "payload.erased" && walk.erasers.has(index);
    if (!isErasure && (body.session_id ?? null) === null) {
      walk.report.find("entry_changed", index, "session", "does not belong to this session");
    }
  }
}

// Without a seal the description counts what is here, and nothing leads anywhere.
function checkUnsealed(walk) {
  const { session } = walk.evidence;
  const facts = {
    root: null, record_count: walk.thoughts.length,
    entries_root: null, entry_count: walk.named.length,
  };
  const isSo = ([key, value]) => session[key] === value;
  const leadsNowhere = session.records.every(({ path }) => path.length === 0);
  if (walk.unreadable === 0 && !(Object.entries(facts).every(isSo) && leadsNowhere)) {
    const said = "is described otherwise than what is here, which was not sealed";
    walk.report.find("seal_mismatch", walk.started?.index ?? null, session.place, said);
  }
}

// The description repeats what the seal says; the seal is what counts.
function checkClaims(walk) {
  const { session } = walk.evidence;
  for (const key of ["root", "record_count", "entries_root", "entry_count"]) {
    if (session[key] !== walk.seal.body[key]) {
      const said = `${key} is not what the seal says`;
      walk.report.find("seal_mismatch", walk.seal.index, session.place, said);
    }
  }
}

async function checkSealBody(walk) {
  const { seal, report } = walk;
  const about = report.entry(seal.index);
  const facts = sealFacts(walk);
  for (const [key, values] of Object.entries(facts)) {
    if (values.includes(seal.body[key])) continue;
    if (walk.unreadable > 0) {
      about.open.push(`${key}: an entry below it cannot be read`);
    } else {
      const said = `${key} is ${show(seal.body[key])}, this file gives ${show(values[0])}`;
      report.find("seal_mismatch", seal.index, "seal", said);
    }
  }
  const trees = { root: walk.thoughts, entries_root: walk.named };
  for (const [key, leaves] of Object.entries(trees)) {
    if ((await treeRoot(leaves.map(({ leaf }) => leaf))) === seal.body[key]) {
      about.held.push(key);
    } else if (walk.changed) {
      about.open.push(`${key}: an entry below it does not hold, so it cannot`);
    } else {
      report.find("seal_mismatch", seal.index, "seal", `${key} is not that of these entries`);
    }
  }
}

function show(value) {
  return canonicalize(value ?? null).slice(0, 80);
}

// What the seal must say; a chain hash may be the one stated or the one it really is.
function sealFacts(walk) {
  const last = walk.thoughts.at(-1)?.entry;
  const { proof_grade: strict, task_id: task } = walk.started?.body ?? {};
  const reflects =
    last?.body.type === "reflection" && (!strict || task === null || task === last.body.task_id);
  return {
    record_count: [walk.thoughts.length],
    entry_count: [walk.named.length],
    first_index: [walk.thoughts[0]?.entry.index],
    last_index: [last?.index],
    chain_hash: walk.chain?.hashes ?? [],
    closing_reflection: [reflects],
  };
}

async function checkFiles(evidence, report) {
  const { manifest, parts } = evidence;
  if (manifest === null) return 0;
  const listed = manifest.files;
  const names = Object.keys(parts).filter((name) => name !== "manifest.json");
  for (const name of names) {
    if (!Object.hasOwn(listed, name)) {
      report.find("entry_changed", null, name, "the manifest does not list this part");
    }
  }
  for (const name of Object.keys(listed)) {
    if (!names.includes(name)) report.find("entry_missing", null, name, "the part is missing");
  }
  let held = 0;
  for (let at = 0; at < names.length; at += GROUP) {
    const group = names.slice(at, at + GROUP);
    const hashes = await Promise.all(group.map((name) => sha256(utf8(parts[name]))));
    group.forEach((name, place) => {
      if (listed[name] === hashes[place]) held += 1;
      else if (Object.hasOwn(listed, name)) {
        report.find("entry_changed", null, name, "is not the part that the manifest lists");
      }
    });
    await pause();
  }
  return held;
}

// The lines of the verdict. A line is broken by the findings that are about it; it is never held
// when there was nothing to check.
function sumUp(walk, files) {
  const { evidence, report, counts } = walk;
  const total = evidence.entries.length;
  const broken = (...codes) => report.findings.some((finding) => codes.includes(finding.code));
  const line = (name, said, isBroken, isOpen) => ({
    name, said, state: isBroken ? "broken" : isOpen ? "open" : "held",
  });
  const size = evidence.checkpoint?.size ?? "?";
  const inLog = `${counts.proved} of ${total} entries are where the log of ${size} has them`;
  const misplaced = report.has("log") || broken("entry_not_canonical", "index_gap");
  return [
    { name: "Signature", ...walk.signature },
    line("Log", inLog, misplaced, counts.proved < total),
    sumUpTexts(counts, broken),
    line("Chains", sayChains(counts), broken("chain_broken"), counts.session === 0),
    ...sumUpSeal(walk, broken),
    line("Parts", `${many(files, "file")} inside, as the manifest lists`,
      report.findings.some((finding) => Object.hasOwn(evidence.parts, finding.place)), files === 0),
  ];
}

function sumUpTexts(counts, broken) {
  const isBroken = broken("payload_mismatch", "payload_lost", "erasure_unexplained");
  const missing = counts.erased + counts.withheld;
  const said =
    `${many(counts.texts, "text")} as recorded` +
    (counts.erased > 0 ? `; ${counts.erased} erased` : "") +
    (counts.withheld > 0 ? `; ${counts.withheld} withheld by whoever made this file` : "");
  const state = isBroken ? "broken" : missing > 0 || counts.texts === 0 ? "open" : "held";
  return { name: "Texts", said, state };
}

function sayChains(counts) {
  const outside = counts.outside > 0 ? `; ${counts.outside} to records outside this file` : "";
  const session = many(counts.session, "link");
  return `${session} of the session, ${counts.task} of its tasks${outside}`;
}

function many(count, noun) {
  return `${Number(count).toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function sumUpSeal(walk, broken) {
  const { seal, report } = walk;
  if (seal === null) {
    const gone = broken("seal_mismatch", "entry_missing");
    const said = gone
      ? "what is said of the seal does not hold"
      : "not sealed: that nothing was left out cannot be proved";
    return [{ name: "Seal", said, state: gone ? "broken" : "open" }];
  }
  const isBroken =
    broken("seal_mismatch", "entry_missing") || report.entry(seal.index).broken.length > 0;
  const isOpen = walk.changed || !walk.sealHolds;
  const state = isBroken ? "broken" : isOpen ? "open" : "held";
  const late = walk.late > 0 ? `; ${walk.late} came later, which it does not count` : "";
  const named = walk.named.length;
  return [
    { name: "Seal", said: `one root over ${many(walk.thoughts.length, "record")}`, state },
    { name: "Completeness", said: `all ${named} entries that the seal counts${late}`, state },
  ];
}
