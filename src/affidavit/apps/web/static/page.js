// What the pages do beyond HTML: copy a snippet, unfold a text, draw the waterfall, and look again
// while the verifier or a session runs.
"use strict";

function offerCopies() {
  for (const snippet of document.querySelectorAll(".snippet")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${snippet.querySelector("figcaption").textContent}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(snippet.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    snippet.append(button);
  }
}

// A text is fetched when it is unfolded, a stretch at a time: a large one keeps nobody waiting.
async function unfold(details, from) {
  const asked = new URLSearchParams({ ...details.dataset, from });
  const reply = await fetch(`/part?${asked}`);
  if (!reply.ok) return;
  const part = await reply.json();
  const text = document.createElement("pre");
  text.className = "part";
  text.tabIndex = 0;
  text.setAttribute("aria-label", `${details.dataset.name}, from character ${from}`);
  text.textContent = part.text;
  details.append(text);
  if (part.next === null) return;
  const more = document.createElement("button");
  more.type = "button";
  more.textContent = `Show more: ${(part.chars - part.next).toLocaleString("en")} characters left`;
  more.addEventListener("click", () => { more.remove(); unfold(details, part.next); });
  details.append(more);
}

document.addEventListener("toggle", (event) => {
  const details = event.target;
  if (!details.open || !details.matches(".fold") || details.querySelector(".part")) return;
  unfold(details, 0);
}, true);

function drawWaterfall() {
  for (const span of document.querySelectorAll(".waterfall .span")) {
    span.style.marginLeft = `${span.dataset.from / 10}%`;
    span.style.width = `${span.dataset.length / 10}%`;
  }
}

// What is new is added; what somebody has unfolded stays as it is.
function renew(told, page) {
  const fresh = page.querySelector("#told");
  if (fresh === null) return;
  const open = [...told.querySelectorAll("details[open]")].map((one) => one.closest("li")?.id);
  for (const item of fresh.querySelectorAll(".story > li")) {
    const old = document.getElementById(item.id);
    if (old !== null && open.includes(item.id)) item.replaceWith(old);
  }
  told.replaceChildren(...fresh.childNodes);
  if (!("entries" in fresh.dataset)) delete told.dataset.entries;
  drawWaterfall();
}

function follow() {
  const told = document.querySelector("#told[data-entries]");
  if (told === null) return;
  let known = told.dataset.entries;
  const look = async () => {
    if (document.visibilityState === "visible") {
      const { entries } = await (await fetch("/pulse")).json();
      if (String(entries) !== known) {
        const text = await (await fetch(location.href)).text();
        known = String(entries);
        renew(told, new DOMParser().parseFromString(text, "text/html"));
      }
    }
    if ("entries" in told.dataset) setTimeout(again, 2000);
  };
  // A server that is gone for a while is asked again, less often.
  const again = () => look().catch(() => setTimeout(again, 10000));
  setTimeout(again, 2000);
}

offerCopies();
drawWaterfall();
follow();

if ("verifying" in document.body.dataset) {
  setTimeout(() => location.reload(), 1500);
}
