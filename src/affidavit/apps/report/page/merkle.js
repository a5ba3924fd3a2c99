// RFC 6962 trees: leaf = H(0x00 || entry), node = H(0x01 || left || right), nothing = H("").

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);
const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Proofs of neighbours share most of their nodes; each is hashed once. The key is what is hashed,
// so a changed node is never mistaken for a known one.
const knownNodes = new Map();

function leafHash(text) {
  return sha256(join(LEAF, utf8(text)));
}

function nodeHash(left, right) {
  const key = left + right;
  let hash = knownNodes.get(key);
  if (hash === undefined) {
    hash = sha256(join(NODE, fromHex(key)));
    knownNodes.set(key, hash);
  }
  return hash;
}

async function treeRoot(leaves) {
  if (leaves.length === 0) return EMPTY_ROOT;
  let level = leaves;
  while (level.length > 1) {
    const pairs = [];
    for (let at = 0; at < level.length; at += 2) {
      pairs.push(at + 1 < level.length ? nodeHash(level[at], level[at + 1]) : level[at]);
    }
    level = await Promise.all(pairs);
  }
  return level[0];
}

// RFC 9162 2.1.3.2. Indexes stay below 2^53, so plain arithmetic replaces shifts.
async function leadsTo(root, index, size, leaf, path) {
  if (!(index < size) || ![root, leaf, ...path].every(isDigest)) return false;
  let fn = index;
  let sn = size - 1;
  let hash = leaf;
  for (const sibling of path) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      hash = await nodeHash(sibling, hash);
      while (fn % 2 === 0 && fn !== 0) {
        fn /= 2;
        sn = Math.floor(sn / 2);
      }
    } else {
      hash = await nodeHash(hash, sibling);
    }
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  }
  return sn === 0 && hash === root;
}
