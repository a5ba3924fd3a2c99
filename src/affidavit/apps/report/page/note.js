// Signed notes, checkpoints, verifier keys and inclusion proofs, as c2sp.org writes them down
// (signed-note, tlog-checkpoint, tlog-proof); Ed25519 by WebCrypto.

const CONTROL = /[\x00-\x09\x0b-\x1f]/;
const SIGNATURE_LINE = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u;
const VERIFIER_KEY = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/u;
const NUMBER = /^(0|[1-9][0-9]{0,15})$/;
const PROOF_HEADER = "c2sp.org/tlog-proof@v1";
const ED25519 = 1;
// How many words a line of a policy has, at least and at most.
const POLICY_LINES = [
  ["log", [2, 3]], ["witness", [3, 4]], ["group", [4, Infinity]], ["quorum", [2, 2]],
];
const FIELD = 2n ** 255n - 19n;
// y of the points of small order: a key like these is fitted by signatures of texts nobody signed.
const SMALL_ORDER = new Set([
  0n,
  1n,
  FIELD - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

function parseNote(text) {
  const end = text.lastIndexOf("\n\n");
  if (CONTROL.test(text) || end < 0 || !text.endsWith("\n") || end + 2 >= text.length) {
    throw new Refused("checkpoint: not a signed note");
  }
  const lines = text.slice(end + 2, -1).split("\n");
  if (lines.length > 100) throw new Refused("checkpoint: more than 100 signatures");
  return { text: text.slice(0, end + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line) {
  const match = SIGNATURE_LINE.exec(line);
  const raw = match ? fromBase64(match[2], "signature line") : [];
  if (raw.length <= 4) throw new Refused("checkpoint: a line that is no signature line");
  return { name: match[1], id: toHex(raw.subarray(0, 4)), value: raw.subarray(4) };
}

function parseCheckpoint(text) {
  const note = parseNote(text);
  const lines = note.text.split("\n");
  if (lines.length !== 4 || lines[3] !== "" || lines[0] === "" || !NUMBER.test(lines[1])) {
    throw new Refused("checkpoint: the text is not origin, size and root");
  }
  const root = toHex(fromBase64(lines[2], "checkpoint"));
  const size = Number(lines[1]);
  if (!isDigest(root) || !isCount(size)) throw new Refused("checkpoint: no root, or no size");
  return { origin: lines[0], size, root, note };
}

async function parseKey(text) {
  const match = VERIFIER_KEY.exec(text);
  if (!match || CONTROL.test(text)) throw new Refused("verifier key: not <name>+<8 hex>+<base64>");
  const raw = fromBase64(match[3], "verifier key");
  const id = (await sha256(join(utf8(`${match[1]}\n`), raw))).slice(0, 8);
  if (raw[0] !== ED25519 || raw.length !== 33) throw new Refused("verifier key: not Ed25519");
  if (id !== match[2]) throw new Refused(`verifier key: prints the ID ${match[2]}, has ${id}`);
  const bytes = raw.subarray(1);
  return { text, name: match[1], id, bytes, fingerprint: await sha256(bytes) };
}

// The sender's policy names the keys of the log (`log <vkey>`). Its other lines are about witnesses,
// who are not asked here: of them only the form is read, and that there is one quorum, of a name.
async function parsePolicy(text) {
  if (/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) throw new Refused("a control character");
  const keys = [];
  const names = new Set(["none"]);
  const quorums = [];
  for (const line of text.split("\n")) {
    const words = line.split(/[ \t]+/).filter((word) => word !== "");
    const [kind, name] = words;
    if (kind === undefined || kind.startsWith("#")) continue;
    const [least, most] = new Map(POLICY_LINES).get(kind) ?? [Infinity, 0];
    if (words.length < least || words.length > most) throw new Refused(`not a line: ${line}`);
    if (kind === "log") keys.push(await parseKey(name));
    if (kind === "witness" || kind === "group") names.add(name);
    if (kind === "quorum") quorums.push(name);
  }
  if (quorums.length !== 1 || !names.has(quorums[0])) throw new Refused("not one known quorum");
  return keys;
}

function isSoundKey(bytes) {
  const y = BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`) & (2n ** 255n - 1n);
  return y < FIELD && !SMALL_ORDER.has(y);
}

// true, false, or null where this browser has no Ed25519.
async function isSigned(text, signature, key) {
  if (!isSoundKey(key.bytes) || signature.value.length !== 64) return false;
  let known;
  try {
    known = await crypto.subtle.importKey("raw", key.bytes, "Ed25519", false, ["verify"]);
  } catch (error) {
    // An unknown algorithm is not checked; a key that is no point of the curve signs nothing.
    return error.name === "DataError" ? false : null;
  }
  return crypto.subtle.verify("Ed25519", known, signature.value, utf8(text));
}

function parseProof(text) {
  const end = text.indexOf("\n\n");
  const lines = text.slice(0, Math.max(end, 0)).split("\n");
  if (lines.shift() !== PROOF_HEADER) throw new Refused("not a tlog-proof");
  const hasExtra = lines.length > 0 && lines[0].startsWith("extra ");
  if (hasExtra) fromBase64(lines.shift().slice(6), "extra");
  const [word, index, more] = (lines.shift() ?? "").split(" ");
  if (word !== "index" || !NUMBER.test(index) || more !== undefined || lines.length > 63) {
    throw new Refused("no index, or too long a path");
  }
  const path = lines.map((line) => toHex(fromBase64(line, "path")));
  if (!path.every(isDigest)) throw new Refused("a hash of the path is not 32 bytes");
  return { index: Number(index), path, checkpoint: text.slice(end + 2), hasExtra };
}
