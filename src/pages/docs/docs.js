// Copy buttons and the search field of the docs page. The page is complete without them. Its hash is in the page's
// Content-Security-Policy: a test says what to write there when this file changes.
(() => {
  "use strict";

  async function copy(block) {
    try {
      await navigator.clipboard.writeText(block.textContent);
      return true;
    } catch {
      // Without TLS there is no clipboard to write to: select the text and let the browser copy it.
      const selection = getSelection();
      selection.selectAllChildren(block);
      const done = document.execCommand("copy");
      if (done) selection.removeAllRanges();
      return done;
    }
  }

  for (const block of document.querySelectorAll("pre")) {
    const frame = document.createElement("div");
    frame.className = "copyable";
    block.replaceWith(frame);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + block.getAttribute("aria-label"));
    button.addEventListener("click", async () => {
      button.textContent = (await copy(block)) ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    frame.append(block, button);
  }

  const main = document.getElementById("content");
  const leaves = [...main.querySelectorAll("section")].filter((part) => !part.querySelector("section"));
  const texts = new Map(leaves.map((part) => [part, part.textContent.toLowerCase()]));
  const links = [...document.querySelectorAll("nav a")];

  const form = document.createElement("form");
  form.className = "search";
  form.setAttribute("role", "search");
  const field = document.createElement("input");
  field.type = "search";
  field.id = "search";
  field.placeholder = "Search (press /)";
  field.setAttribute("aria-label", "Search this page");
  field.autocomplete = "off";
  const count = document.createElement("p");
  count.className = "count";
  count.setAttribute("role", "status");
  form.append(field, count);
  document.querySelector("body > header").append(form);

  function search() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [part, text] of texts) {
      part.hidden = !words.every((word) => text.includes(word));
      if (!part.hidden) found += 1;
    }
    for (const whole of main.querySelectorAll("section:has(section)")) {
      whole.hidden = ![...whole.querySelectorAll("section")].some((part) => !part.hidden);
    }
    for (const link of links) {
      const target = document.getElementById(link.getAttribute("href").slice(1));
      link.parentElement.hidden = Boolean(target && target.hidden);
    }
    main.classList.toggle("searching", words.length > 0);
    count.textContent = words.length ? found + (found === 1 ? " section" : " sections") : "";
  }

  function clear() {
    field.value = "";
    search();
  }

  field.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === field) return;
    event.preventDefault();
    field.focus();
  });
  // A link may lead to what the search has hidden.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.closest("[hidden]")) return;
    clear();
    target.scrollIntoView();
  });
})();
