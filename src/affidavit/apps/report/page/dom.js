// Elements and texts. Whatever was recorded reaches the page as a text node, never as markup, with
// characters that cannot be seen, or that reorder a line, spelled out.

const UNSEEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
const SHOWN_MAX = 20_000;

function el(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.filter((child) => child !== null));
  return element;
}

function safe(text) {
  const pieces = document.createDocumentFragment();
  const whole = String(text);
  let at = 0;
  for (const match of whole.matchAll(UNSEEN)) {
    pieces.append(whole.slice(at, match.index));
    const code = match[0].codePointAt(0).toString(16).padStart(4, "0");
    pieces.append(el("span", "unseen", `\\u${code}`));
    at = match.index + match[0].length;
  }
  pieces.append(whole.slice(at));
  return pieces;
}

// A text block; of a very long one, the beginning, and a button that shows the rest.
function textBlock(text, name) {
  const block = el("div", `text ${name}`);
  block.dir = "auto";
  if (text.length <= SHOWN_MAX) {
    block.append(safe(text));
    return block;
  }
  const more = el("button", "more", `Show all ${text.length.toLocaleString("en")} characters`);
  more.type = "button";
  more.addEventListener("click", () => block.replaceChildren(safe(text)));
  block.append(safe(text.slice(0, SHOWN_MAX)), el("span", "cut", "\u2026"), more);
  return block;
}

function changeBlock(change) {
  const lines = change.lines.map(([sign, text]) => {
    const name = { "+": "added", "-": "removed", "@": "place", " ": "same" }[sign];
    const line = el("span", `line ${name}`, sign === "@" ? "" : `${sign} `, safe(text), "\n");
    return line;
  });
  const head = change.path === null ? null : el("div", "path", safe(change.path));
  return el("figure", "change", head, el("pre", "", ...lines));
}

function link(index, said) {
  const anchor = el("a", "", said ?? `entry ${index}`);
  anchor.href = `#e${index}`;
  return anchor;
}

function time(us) {
  const date = new Date(us / 1000);
  const element = el("time", "", date.toISOString().slice(11, 23));
  element.dateTime = date.toISOString();
  element.title = date.toISOString();
  return element;
}
