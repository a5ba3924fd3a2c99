// The container of an evidence file: a zip of stored files, names sorted, times 1980-01-01. The
// same parts give the same bytes as `affidavit export -o FILE.affidavit`.

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC_TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

// Little-endian numbers, each with its width in bytes.
function pack(...fields) {
  const bytes = [];
  for (const [value, width] of fields) {
    for (let at = 0; at < width; at++) bytes.push(Math.floor(value / 256 ** at) % 256);
  }
  return Uint8Array.from(bytes);
}

function encodeArchive(parts) {
  const chunks = [];
  const listing = [];
  let offset = 0;
  for (const name of Object.keys(parts).sort()) {
    const data = utf8(parts[name]);
    const path = utf8(name);
    const crc = crc32(data);
    // Version 2.0, no flags, stored, midnight of 1980-01-01, checksum, size twice, length of name.
    const shared = [
      [20, 2], [0, 2], [0, 2], [0, 2], [33, 2], [crc, 4], [data.length, 4], [data.length, 4],
      [path.length, 2], [0, 2],
    ];
    chunks.push(pack([0x04034b50, 4], ...shared), path, data);
    listing.push(
      pack([0x02014b50, 4], [0x0314, 2], ...shared, [0, 2], [0, 2], [0, 2], [0o600 * 65536, 4],
        [offset, 4]),
      path,
    );
    offset += 30 + path.length + data.length;
  }
  const count = Object.keys(parts).length;
  const bytes = listing.reduce((size, chunk) => size + chunk.length, 0);
  const end = pack(
    [0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [bytes, 4], [offset, 4], [0, 2],
  );
  return new Blob([...chunks, ...listing, end], { type: "application/zip" });
}
