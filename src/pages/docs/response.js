// Shows a response: status, limits, headers, body. All text is set as text, never as HTML.

const MOST_SHOWN = 20000; // characters of a body

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function linkTo(id, text) {
  return element("a", { href: "#" + id }, element("code", {}, text));
}

function counted(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

function durationWords(seconds) {
  if (seconds < 120) return counted(seconds, "second");
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return counted(minutes, "minute");
  const rest = minutes % 60;
  return counted(Math.floor(minutes / 60), "hour") + (rest ? ` ${counted(rest, "minute")}` : "");
}

// A sentence for each rule of `RateLimit`, with its quota from `RateLimit-Policy`.
function limitSentences(headers) {
  const policy = headers.get("ratelimit-policy") ?? "";
  const quotas = new Map([...policy.matchAll(/"([a-z_]+)";q=(\d+)/g)].map(([, rule, quota]) => [rule, Number(quota)]));
  const rules = [...(headers.get("ratelimit") ?? "").matchAll(/"([a-z_]+)";r=(\d+);t=(\d+)/g)];
  return rules.map(([, rule, remaining, seconds]) => {
    const quota = quotas.get(rule);
    const title = rule[0].toUpperCase() + rule.slice(1);
    const left = `${title}: ${Number(remaining).toLocaleString("en")} of ${counted(quota, rule === "guard" ? "refused request" : "request")} left`;
    return Number(remaining) === quota ? `${left}.` : `${left}; full again in ${durationWords(Number(seconds))}.`;
  });
}

// When to send the next request, if the response states it.
function waitSentence(response) {
  const seconds = Number(response.headers.get("retry-after"));
  if (!seconds) return "";
  const at = new Date(Date.now() + seconds * 1000).toLocaleTimeString();
  const rule = response.headers.get("x-ratelimit-resource");
  const reason = response.status === 429 ? `The limit of the ${rule} is used up. ` : "";
  return `${reason}Wait ${durationWords(seconds)}, until ${at}.`;
}

// The text about a code from the error section of this page.
function explainError(code) {
  const section = document.getElementById(code);
  if (!section?.matches(".error")) return [];
  const terms = [...section.querySelectorAll("dt")];
  const remedy = terms.find((term) => term.textContent === "Remedy").nextElementSibling.textContent;
  return [element("p", {}, linkTo(code, code), `: ${section.querySelector(".title").textContent}. ${remedy}`)];
}

function headerMeanings() {
  const rows = [...document.querySelectorAll("#headers tbody tr")];
  return new Map(rows.map((row) => [row.querySelector("th").textContent.toLowerCase(), row.cells[2].textContent]));
}

function headerTable(headers) {
  const meanings = headerMeanings();
  const head = ["Header", "Value", "Meaning"].map((text) => element("th", { scope: "col" }, text));
  const rows = [...headers].map(([name, value]) => element("tr", {},
    element("th", { scope: "row" }, element("code", {}, name)),
    element("td", {}, element("code", {}, value)),
    element("td", {}, meanings.get(name) ?? "")));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  const frame = element("div", { className: "scroll stack", tabIndex: 0, role: "group" }, table);
  frame.setAttribute("aria-label", "Headers of the response");
  return element("details", {}, element("summary", {}, `Headers (${rows.length})`), frame);
}

function bodyBlock(text, isJson) {
  const whole = isJson ? indentJson(text) : text;
  const isCut = whole.length > MOST_SHOWN;
  const shown = isCut ? whole.slice(0, MOST_SHOWN) : whole;
  const block = element("pre", { tabIndex: 0, role: "group" }, element("code", {}, shown));
  block.setAttribute("aria-label", "Body of the response");
  const place = element("div", { className: "body" }, block);
  addCopyButton(block, () => whole);
  if (isCut) {
    const sizes = [MOST_SHOWN, whole.length].map((size) => size.toLocaleString("en"));
    place.append(element("p", { className: "note" }, `The first ${sizes[0]} of ${sizes[1]} characters are shown. Copy copies all.`));
  }
  return place;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The parts of a response below its status.
function describe(response, text) {
  const body = parsed(text);
  const parts = response.ok ? [] : explainError(body?.code);
  const wait = waitSentence(response);
  if (wait) parts.push(element("p", { className: "wait" }, wait));
  const sentences = limitSentences(response.headers);
  const list = element("ul", { className: "limits" }, ...sentences.map((sentence) => element("li", {}, sentence)));
  if (sentences.length) parts.push(list);
  parts.push(headerTable(response.headers));
  if (text) parts.push(bodyBlock(text, body !== undefined));
  return parts;
}
