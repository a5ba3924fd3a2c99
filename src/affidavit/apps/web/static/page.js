// What the pages do beyond HTML: copy a snippet, and look again while the verifier runs.
"use strict";

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

if ("verifying" in document.body.dataset) {
  setTimeout(() => location.reload(), 1500);
}
