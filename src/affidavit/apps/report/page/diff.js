// Changes of files, found in what a tool was asked or a proposal says, as lines added and removed.

const BEFORE = ["old_string", "old_text", "old", "before", "original"];
const AFTER = ["new_string", "new_text", "new", "after", "modified"];
const UNIFIED = ["diff", "patch", "unified", "unified_diff"];
const PATHS = ["path", "file_path", "file", "filename", "uri", "new_path"];
const CELLS_MAX = 4_000_000;

// Every change in a value: [{path, lines: [[sign, text], ...]}], empty where there is none.
function findChanges(value, depth = 0) {
  if (depth > 4) return [];
  if (typeof value === "string") return isUnified(value) ? [unifiedChange(null, value)] : [];
  if (Array.isArray(value)) return value.flatMap((item) => findChanges(item, depth + 1));
  if (!isObject(value)) return [];
  const path = firstText(value, PATHS);
  const unified = firstText(value, UNIFIED);
  if (unified !== null) return [unifiedChange(path, unified)];
  const before = firstText(value, BEFORE);
  const after = firstText(value, AFTER);
  if (before !== null && after !== null) return [{ path, lines: diffLines(before, after) }];
  return Object.values(value).flatMap((item) =>
    isObject(item) || Array.isArray(item)
      ? findChanges(item, depth + 1).map((change) => ({ ...change, path: change.path ?? path }))
      : [],
  );
}

function firstText(value, names) {
  const name = names.find((one) => Object.hasOwn(value, one) && typeof value[one] === "string");
  return name === undefined ? null : value[name];
}

function isUnified(text) {
  return /^(diff |--- |\+\+\+ |@@ )/m.test(text) && /^@@ /m.test(text);
}

// Inside a hunk every line is content, whatever it looks like; the hunk's head counts them.
function unifiedChange(path, text) {
  let before = 0;
  let after = 0;
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    if (before > 0 || after > 0) {
      const sign = "+-".includes(line[0] ?? " ") ? line[0] : " ";
      if (line[0] === "\\") return ["@", line];
      if (sign !== "+") before -= 1;
      if (sign !== "-") after -= 1;
      return [sign, line.slice(1)];
    }
    const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (head) [before, after] = [Number(head[1] ?? 1), Number(head[2] ?? 1)];
    return ["@", line];
  });
  return { path, lines };
}

// The longest common subsequence of lines, between what both have at their beginning and end.
function diffLines(before, after) {
  const whole = before.endsWith("\n") && after.endsWith("\n") ? -1 : undefined;
  const a = before.slice(0, whole).split("\n");
  const b = after.slice(0, whole).split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  const most = Math.min(a.length, b.length) - head;
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
}

function diffMiddle(a, b) {
  if (a.length * b.length > CELLS_MAX) {
    return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] =
        a[i] === b[j] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const at = i * width + j;
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i++]]);
      j++;
    } else if (i < a.length && (j === b.length || common[at + width] >= common[at + 1])) {
      lines.push(["-", a[i++]]);
    } else {
      lines.push(["+", b[j++]]);
    }
  }
  return lines;
}
