// Canonical JSON (RFC 8785). Text is read strictly: it must be exactly what would be written, so a
// repeated key, another order, a space or another spelling of a number is refused.

const DEPTH_MAX = 64;

function canonicalize(value, depth = 0) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new Refused("a number that JSON does not have");
    return JSON.stringify(value);
  }
  if (depth >= DEPTH_MAX) throw new Refused(`deeper than ${DEPTH_MAX} levels`);
  if (Array.isArray(value)) {
    return `[${value.map((item) => canonicalize(item, depth + 1)).join(",")}]`;
  }
  // sort() compares UTF-16 code units, as RFC 8785 3.2.3 asks.
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${quote(key)}:${canonicalize(value[key], depth + 1)}`).join(",")}}`;
}

function quote(text) {
  if (/\p{Surrogate}/u.test(text)) throw new Refused("half of a surrogate pair");
  return JSON.stringify(text);
}

function readCanonical(text, what) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refused(`${what}: not JSON`);
  }
  if (hasUnsafeNumber(value) || canonicalize(value) !== text) {
    throw new Refused(`${what}: not in canonical form`);
  }
  return value;
}

function hasUnsafeNumber(value) {
  if (typeof value === "number") return !Number.isSafeInteger(value);
  return value !== null && typeof value === "object" && Object.values(value).some(hasUnsafeNumber);
}

// What entries may hold beyond that: plain keys only, and no NUL in any text.
function isRestricted(value) {
  if (typeof value === "string") return !value.includes("\0");
  if (value === null || typeof value !== "object") return true;
  const plain = Array.isArray(value) || Object.keys(value).every((key) => /^[a-z0-9_]+$/.test(key));
  return plain && Object.values(value).every(isRestricted);
}

async function hashOf(value) {
  return sha256(utf8(canonicalize(value)));
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

function hasKeys(value, keys) {
  return isObject(value) && Object.keys(value).sort().join() === [...keys].sort().join();
}
