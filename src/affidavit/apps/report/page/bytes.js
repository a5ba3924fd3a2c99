// Bytes and their digests: hex, base64, UTF-8, and SHA-256 by the browser's own WebCrypto.
// A digest is a string of hex everywhere in this page; bytes appear only where they are hashed.

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const ENCODER = new TextEncoder();

function utf8(text) {
  return ENCODER.encode(text);
}

function toHex(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

function fromHex(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(hex.substr(at * 2, 2), 16);
  return bytes;
}

function isDigest(value) {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

// RFC 4648 section 4, spelled in the one right way: it encodes back to itself.
function fromBase64(text, what) {
  let raw = "";
  try {
    raw = atob(text);
  } catch {
    raw = "";
  }
  if (!raw || btoa(raw) !== text) throw new Refused(`${what}: base64 that is not in its one form`);
  return Uint8Array.from(raw, (character) => character.charCodeAt(0));
}

function join(...chunks) {
  const bytes = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

async function sha256(bytes) {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

// What cannot be read as the format says; the reader of a part turns it into a finding.
class Refused extends Error {}

// Lets the page be drawn and answer between two groups of work. A timer would wait 4 ms each time.
function pause() {
  return new Promise((resume) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resume();
    };
    port2.postMessage(null);
  });
}
