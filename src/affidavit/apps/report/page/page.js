// Puts the page together: the head, the story, then the check, painted as it goes.

const CARDS = 400;

async function open() {
  const parts = JSON.parse(document.getElementById("evidence").textContent);
  const report = new Report();
  const evidence = await readEvidence(parts, report);
  showHead(evidence);
  document.getElementById("save").addEventListener("click", () => save(evidence));
  await showStory(evidence);
  performance.mark("shown");
  if (globalThis.crypto?.subtle === undefined) {
    conclude("open", "Not checked: this browser gives a file opened like this no WebCrypto.", []);
    return;
  }
  const total = evidence.entries.length;
  await checkEvidence(evidence, report, (group, done) => {
    for (const entry of group) paint(report.entry(entry.index), entry.card);
    document.getElementById("progress").textContent = `${done} of ${total} entries`;
  });
  for (const entry of evidence.entries) {
    const about = report.entry(entry.index);
    if (about.state === "broken") paint(about, entry.card);
  }
  performance.mark("checked");
  showKeys(evidence);
  compareKept(evidence);
  showVerdict(evidence, report);
}

async function showStory(evidence) {
  const story = document.getElementById("story");
  const requests = new Map();
  for (const entry of evidence.entries) {
    if (/^(tool_call\.requested|proposal\.created)$/.test(entry.kind)) {
      requests.set(requestOf(entry.body), entry);
    }
  }
  let day = "";
  for (let at = 0; at < evidence.entries.length; at += CARDS) {
    const cards = document.createDocumentFragment();
    for (const entry of evidence.entries.slice(at, at + CARDS)) {
      const today = isCount(entry.at) ? new Date(entry.at / 1000).toISOString().slice(0, 10) : day;
      if (today !== day) cards.append(el("h2", "day", (day = today)));
      entry.card = card(entry, evidence, requests);
      cards.append(entry.card);
    }
    story.append(cards);
    await pause();
  }
}

function showHead(evidence) {
  const start = evidence.entries.find((entry) => entry.kind === "session.started");
  const body = start?.body ?? {};
  const intent = evidence.payloads.get(start?.index)?.intent?.text;
  const name = body.session_id ?? evidence.manifest?.scope.id ?? "unknown";
  document.title = `Session ${String(name).slice(0, 80)}`;
  const title = document.getElementById("title");
  title.replaceChildren(safe(typeof intent === "string" ? intent : `Session ${name}`));
  const count = (kind) => evidence.entries.filter((entry) => entry.kind === kind).length;
  const told = {
    session: name, ledger: body.ledger_id, "started by": body.caller, task: body.task_id,
    project: body.project, model: body.model, started: body.started_at,
    "goes on from": body.continues?.session_id,
    holds: `${evidence.entries.length} entries, ${count(THOUGHT)} of them decision records`,
    agents: [...new Set(evidence.entries.map((entry) => entry.body.agent_id))]
      .filter((agent) => typeof agent === "string").slice(0, 20).join(", "),
  };
  const list = document.getElementById("about");
  for (const [key, value] of Object.entries(told)) {
    if (value) list.append(el("dt", "", key), el("dd", "", safe(value)));
  }
}

function showKeys(evidence) {
  const list = document.getElementById("keys");
  for (const key of evidence.keys ?? []) {
    const grouped = key.fingerprint.replace(/(.{8})(?=.)/g, "$1 ");
    list.append(
      el("dt", "", "verifier key"), el("dd", "digest", safe(key.text)),
      el("dt", "", "fingerprint (SHA-256)"), el("dd", "digest", grouped),
    );
  }
  if (list.childElementCount === 0) list.append(el("dt", "", "no key comes with this file"));
}

// What the reader holds against the file is compared whenever it changes.
function compareKept(evidence) {
  const area = document.getElementById("kept");
  const answer = document.getElementById("compared");
  let asked = 0;
  const compare = async () => {
    const mine = ++asked;
    const { state, said } = await judgeKept(area.value, evidence);
    if (mine !== asked) return;
    answer.dataset.state = state;
    answer.replaceChildren(safe(said));
  };
  area.addEventListener("input", compare);
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    area.value = await file.slice(0, 1_000_000).text();
    await compare();
  });
  compare();
}

function showVerdict(evidence, report) {
  const count = report.findings.length;
  const wrong = [...new Set(report.findings.map((one) => one.index))].filter((one) => one !== null);
  if (count > 0) {
    const what = count === 1 ? "One thing does" : `${count} things do`;
    conclude("broken", `${what} not hold. This is not what was recorded.`, report.lines);
    showFindings(report.findings, wrong);
  } else if (report.lines.every((line) => line.state === "held")) {
    conclude("held", "Everything in this file holds.", report.lines);
  } else {
    conclude("open", "What could be checked holds; not everything could be.", report.lines);
  }
}

function showFindings(findings, wrong) {
  const list = document.getElementById("wrong");
  for (const index of wrong.sort((a, b) => a - b).slice(0, 100)) {
    list.append(el("li", "", link(index)));
  }
  for (const one of findings.filter((finding) => finding.index === null).slice(0, 100)) {
    list.append(el("li", "", safe(`${one.message} (${one.code}, ${one.place})`)));
  }
}

function conclude(state, said, lines) {
  const verdict = document.getElementById("verdict");
  verdict.dataset.state = state;
  document.getElementById("said").textContent = said;
  document.getElementById("progress").textContent = "";
  const list = document.getElementById("checks");
  for (const line of lines) {
    const item = el("li", "", el("b", "", line.name), el("span", "", safe(line.said)));
    item.dataset.state = line.state;
    list.append(item);
  }
  document.documentElement.dataset.done = state;
}

function save(evidence) {
  const name = String(evidence.manifest?.scope.id ?? "session").replace(/[^A-Za-z0-9._-]/g, "_");
  const anchor = el("a", "");
  anchor.href = URL.createObjectURL(encodeArchive(evidence.parts));
  anchor.download = `${name.slice(0, 100)}.affidavit`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

open().catch((error) => {
  conclude("broken", `This page could not check itself: ${error.message}`, []);
});
