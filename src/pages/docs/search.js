// The search field. It filters sections, and lists the endpoints, parameters, fields, headers, error codes and missing
// features whose names contain the text. The page is indexed before forms are added. Searches on other pages lead here.

const main = document.getElementById("content");
const leaves = [...main.querySelectorAll("section")].filter((part) => !part.querySelector("section"));
const texts = new Map(leaves.map((part) => [part, part.textContent.toLowerCase()]));
const links = [...document.querySelectorAll("body > nav a")];
const MOST_HITS = 8;

// The kind of the names in the first column of a table. Other tables have no kind, nor does the overview of parameters,
// which are listed with each endpoint.
function kindOfTable(table, section) {
  const name = table.closest("[aria-label]").getAttribute("aria-label");
  if (name.startsWith("Parameters of")) return "Parameter";
  if (section.id === "headers") return "Header";
  return name.startsWith("Fields") ? "Field" : null;
}

function indexNames() {
  const names = [];
  const add = (kind, name, place, target) => names.push({ kind, name, place, target, lower: name.toLowerCase() });
  for (const section of main.querySelectorAll("section")) {
    const title = section.querySelector("h2, h3 code").textContent;
    if (section.matches(".endpoint")) add("Endpoint", title, "", section);
    if (section.matches(".error")) add("Error", title, "", section);
    const tables = [...section.querySelectorAll("table")].filter((table) => table.closest("section") === section);
    for (const table of tables) {
      const kind = kindOfTable(table, section);
      for (const cell of kind ? table.querySelectorAll("tbody th") : []) {
        const name = cell.querySelector("code").textContent;
        cell.parentElement.id ||= `${section.id}.${name}`;
        add(kind, name, kind === "Header" ? "" : title, cell.parentElement);
      }
    }
  }
  for (const term of main.querySelectorAll("#not-available dt")) add("Not available:", term.textContent, "", term);
  return names;
}
const names = indexNames();

const field = document.getElementById("search");
const form = field.form;
field.title = "Press / to search";
const count = document.createElement("p");
count.className = "count";
count.setAttribute("role", "status");
const hits = document.createElement("ul");
hits.className = "hits";
hits.hidden = true;
hits.setAttribute("aria-label", "Names found");
document.querySelector("body > header").append(count, hits);

// Names that begin with the text come first.
function findNames(text) {
  if (text.length < 2) return [];
  const rank = (entry) => (entry.lower === text ? 0 : entry.lower.startsWith(text) ? 1 : 2);
  const found = names.filter((entry) => entry.lower.includes(text));
  return found.sort((one, other) => rank(one) - rank(other));
}

function listNames(found) {
  hits.replaceChildren(...found.slice(0, MOST_HITS).map((entry) => {
    const link = document.createElement("a");
    link.href = "#" + encodeURIComponent(entry.target.id);
    const name = document.createElement("code");
    name.textContent = entry.name;
    link.append(entry.kind + " ", name, entry.place && ` of ${entry.place}`);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (found.length > MOST_HITS) {
    const rest = document.createElement("li");
    rest.textContent = `and ${found.length - MOST_HITS} more`;
    hits.append(rest);
  }
  hits.hidden = found.length === 0;
}

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const named = findNames(words.join(" "));
  listNames(named);
  let found = 0;
  for (const [part, text] of texts) {
    const isNamed = named.some((entry) => part.contains(entry.target));
    part.hidden = !isNamed && !words.every((word) => text.includes(word));
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

function clearSearch() {
  field.value = "";
  search();
}

field.addEventListener("input", search);
form.addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("keydown", (event) => { if (event.key === "Escape") clearSearch(); });
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  field.focus();
});
// A link may lead to a section that the search has hidden.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const isHidden = target.offsetParent === null;
  if (isHidden) clearSearch();
  if (isHidden || target.matches("tr")) target.scrollIntoView({ block: "center" });
});

field.value = new URLSearchParams(location.search).get("search") ?? "";
if (field.value) search();
