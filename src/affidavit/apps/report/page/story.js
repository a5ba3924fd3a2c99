// The session as a story: each entry a card in log order, with who, when, how it came in, what was
// said or seen. A kind that is not known here is shown as it is written.

const SEEN = new Set(["hook", "proxy", "otlp", "import"]);
const WORDS = {
  "session.started": "Session started", "session.sealed": "Session sealed",
  "session.ended": "Session ended", "session.linked": "Session linked",
  "turn.asserted": "Turn", "turn.retracted": "Turn retracted",
  "tool_call.requested": "Tool call", "tool_call.completed": "Tool call finished",
  "tool_call.failed": "Tool call failed", "tool_call.late": "Late result of a tool call",
  "proposal.created": "Edit proposed", "proposal.decided": "Proposal decided",
  "proposal.applied": "Proposal applied", "proposal.reverted": "Proposal reverted",
  "approval.decided": "Tool call decided", "payload.erased": "Text erased",
  "capture.started": "Capture started", "capture.stopped": "Capture stopped",
  "events.dropped": "Events dropped",
};
// What the card's title and its line of facts say already, and hashes only a checker reads.
const UNTOLD = new Set([
  "session_id", "type", "agent_id", "caller", "actor", "by", "tool_name", "turn_kind", "hash",
  "prev_hash", "content_hash", "chain_hash", "parent_chain_hash", "session_seq", "ledger_id",
  "genesis", "args_form", "outcome_form", "call_id", "message_id",
]);
const CODE = new Set(["arguments", "outcome", "attributes", "diffs"]);

// What an answer has in common with what asked for it: calls of one request differ by call_id.
function requestOf(body) {
  return JSON.stringify([body.request_id, body.call_id]);
}

function describe(entry, requests) {
  const { kind, body } = entry;
  const tool = body.tool_name ?? requests.get(requestOf(body))?.body.tool_name;
  let title = Object.hasOwn(WORDS, kind) ? WORDS[kind] : null;
  if (kind === THOUGHT) title = capital(body.type);
  if (kind === "turn.asserted") title = `Turn: ${body.turn_kind}`;
  if (tool && String(kind).startsWith("tool_call.")) title = `${title}: ${tool}`;
  return {
    title: title ?? kind ?? "Unreadable entry",
    known: title !== null,
    who: body.agent_id ?? body.caller ?? body.actor ?? body.by ?? null,
  };
}

function capital(text) {
  const said = String(text);
  return said.charAt(0).toUpperCase() + said.slice(1);
}

function card(entry, evidence, requests) {
  const { title, known, who } = describe(entry, requests);
  const article = el("article", `entry ${String(entry.kind).split(".")[0].replace(/\W/g, "")}`);
  article.id = `e${entry.index}`;
  article.dataset.state = "waiting";
  const source = entry.src.via === undefined ? null : el("span", "source", safe(told(entry.src)));
  const head = el(
    "header", "", el("span", "mark"), el("h3", "", safe(title)),
    who === null ? null : el("span", "who", safe(who)), source,
    isCount(entry.at) ? time(entry.at) : null,
  );
  const parts = [head];
  if (entry.kind === null) parts.push(textBlock(entry.text, "code"));
  if (!known && entry.kind !== null) {
    parts.push(el("p", "note", "A kind this page does not know; it is shown as it is written."));
    parts.push(textBlock(JSON.stringify(entry.body, null, 2), "code"));
  }
  const fields = payloadFields(entry).filter((name) => !isRepeated(entry, evidence, name));
  for (const name of fields) parts.push(field(entry, evidence, name));
  article.append(...[...parts, facts(entry, requests)].filter((part) => part !== null));
  article.append(el("ul", "findings"), detail(entry));
  return article;
}

// A digest is shown only where the text that it is of is not.
function isRepeated(entry, evidence, name) {
  const text = { args_sha256: "arguments", outcome_sha256: "outcome" }[name];
  return typeof evidence.payloads.get(entry.index)?.[text]?.text === "string";
}

function told(src) {
  const by = src.client === null ? "" : ` (${src.client})`;
  const voucher = src.auth === "none" ? "" : `, ${src.auth}`;
  return `${SEEN.has(src.via) ? "seen" : "said"} via ${src.via}${voucher}${by}`;
}

function facts(entry, requests) {
  if (describe(entry, requests).known === false) return null;
  const list = el("dl", "facts");
  for (const [key, value] of Object.entries(entry.body)) {
    if (UNTOLD.has(key) || value === null || isCommitment(value)) continue;
    const name = key.replace(/(_at)?_ms$/, "").replaceAll("_", " ");
    list.append(el("div", "", el("dt", "", safe(name)), factValue(key, value, entry, requests)));
  }
  return list.childElementCount > 0 ? list : null;
}

function factValue(key, value, entry, requests) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const request = key === "request_id" ? requests.get(requestOf(entry.body)) : undefined;
  if (request !== undefined && request.index !== entry.index) {
    return el("dd", "", link(request.index, `as asked in entry ${request.index}`));
  }
  // A time that somebody claimed, in milliseconds since 1970.
  const isTime = /(^|_)at_ms$/.test(key) && isCount(value) && value <= 8.64e15;
  if (isTime) return el("dd", "", new Date(value).toISOString());
  if (key.endsWith("_ms")) return el("dd", "", safe(`${text} ms`));
  if (key === "redaction" && isObject(value)) {
    return el("dd", "", safe(`${many(value.count, "secret")} removed before it was stored`));
  }
  return el("dd", isDigest(value) ? "digest" : "", safe(text));
}

function field(entry, evidence, name) {
  const shown = evidence.payloads.get(entry.index)?.[name];
  const label = el("div", "label", safe(name.replaceAll("_", " ")));
  if (isObject(shown) && typeof shown.text === "string") {
    const digest = el("code", "", safe(shown.text));
    if (name.endsWith("_sha256")) return el("p", "digests", label, digest);
    return el("section", "field", name === "content" ? null : label, ...body(name, shown.text));
  }
  let said = "not in this file";
  if (isObject(shown) && shown.withheld === true) said = "withheld by whoever made this file";
  if (isObject(shown) && isCount(shown.erased)) said = `erased, as entry ${shown.erased} says`;
  return el("section", "field gone", label, el("p", "note", said));
}

function body(name, text) {
  if (!CODE.has(name)) return [textBlock(text, name === "content" ? "said" : "")];
  const value = parseQuietly(text);
  const changes = findChanges(value);
  const parts = changes.length > 0 ? changes.map(changeBlock) : longParts(value);
  if (parts.length > 0) {
    const whole = el("details", "raw", el("summary", "", "as recorded"), textBlock(text, "code"));
    return [...parts, whole];
  }
  return [textBlock(value === undefined ? text : pretty(value), "code")];
}

// What a program printed is read by its lines, not by the escapes of JSON.
function longParts(value) {
  const isLong = (one) => typeof one === "string" && one.includes("\n");
  if (!isObject(value) || !Object.values(value).some(isLong)) return [];
  return Object.entries(value).flatMap(([key, one]) => [
    el("div", "label", safe(key)), textBlock(pretty(one), "code"),
  ]);
}

// Only canonical text is set out: of any other, a reader of JSON may not see everything.
function parseQuietly(text) {
  try {
    const value = JSON.parse(text);
    return canonicalize(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// What was checked, and the bytes that are hashed: made when somebody opens it.
function detail(entry) {
  const details = el("details", "detail");
  const summary = el("summary", "", `entry ${entry.index}`, el("span", "verdict", ""));
  details.append(summary);
  details.addEventListener(
    "toggle", () => details.append(el("pre", "text code", safe(entry.text))), { once: true },
  );
  return details;
}

const STATE_WORDS = {
  held: "holds", broken: "does not hold", open: "holds, not all of it could be checked",
  waiting: "not checked yet",
};

function paint(about, article) {
  article.dataset.state = about.state;
  const said = about.held.length > 0 ? `: ${about.held.join(", ")}` : "";
  const words = about.state === "broken" ? STATE_WORDS.broken : STATE_WORDS[about.state] + said;
  article.querySelector(".verdict").textContent = words;
  const open = about.open.map((text) => el("li", "open", safe(`not checked: ${text}`)));
  const broken = about.broken.map((text) => el("li", "broken", safe(text)));
  article.querySelector(".findings").replaceChildren(...broken, ...open);
}
