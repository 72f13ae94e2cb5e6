// "Try it": a form for each operation, which sends the request to the service that served this page. The key is kept
// only in the key fields of the forms. It is never in a URL, a cookie or storage, and is removed when the reader leaves
// the page.

const API = JSON.parse(document.getElementById("operations").textContent);
// The path of the API is relative to this page, so that it also works behind a proxy that adds a prefix to the path.
const ownBase = new URL(API.base.slice(1), location.href).href;
const keyFields = [];
const modelIds = element("datalist", { id: "model-ids" });
document.body.append(modelIds);

function setKeys(key, except) {
  for (const one of keyFields) if (one !== except) one.value = key;
}
addEventListener("pagehide", () => setKeys("", null));

function labelled(id, text, control, note) {
  control.id = id;
  const parts = [element("label", { htmlFor: id }, text), control];
  if (note) {
    const hint = element("p", { className: "hint", id: `${id}-hint` }, ...note);
    control.setAttribute("aria-describedby", hint.id);
    parts.push(hint);
  }
  return element("div", { className: "field" }, ...parts);
}

function keyField(id) {
  const input = element("input", { type: "password", autocomplete: "off", spellcheck: false });
  input.value = keyFields[0]?.value ?? "";
  input.addEventListener("input", () => setKeys(input.value, input));
  keyFields.push(input);
  const note = ["Kept in the memory of this page only."];
  if (API.signUp) note.push(" ", element("a", { href: API.signUp }, "Get a key"), ".");
  return labelled(id, "API key", input, note);
}

function choice(parameter) {
  const byDefault = parameter.default ? `default (${parameter.default})` : "default";
  const options = parameter.values.map((word) => element("option", { value: word }, word));
  return element("select", {}, element("option", { value: "" }, byDefault), ...options);
}

function control(parameter) {
  if (parameter.values) return choice(parameter);
  if (parameter.maximum) {
    const { minimum, maximum } = parameter;
    return element("input", { type: "number", min: minimum, max: maximum, step: 1, placeholder: parameter.default });
  }
  const input = element("input", {
    type: "text", required: true, autocomplete: "off", spellcheck: false, value: parameter.default ?? "",
  });
  input.setAttribute("list", modelIds.id);
  // Browsers resolve these segments, so a different path would be requested.
  input.addEventListener("input", () => {
    input.setCustomValidity(/^\.{1,2}$/.test(input.value) ? "Write the id of a model." : "");
  });
  return input;
}

// Fields for a model id suggest the ids from a list of models.
function suggestModels(operation, text) {
  const items = operation.name === "models" ? parsed(text)?.data : null;
  if (!Array.isArray(items)) return;
  const ids = items.map((item) => item?.id).filter((id) => typeof id === "string");
  modelIds.replaceChildren(...ids.map((id) => element("option", { value: id })));
}

async function send(operation, target, key, view) {
  view.result.replaceChildren();
  view.status.className = "outcome";
  if (/[^!-~]/.test(key)) {
    view.status.textContent = "Not sent: a key has no spaces and only ASCII characters.";
    return;
  }
  view.status.textContent = "Sending…";
  const began = performance.now();
  try {
    const response = await fetch(ownBase + target, {
      headers: key ? { "X-API-Key": key } : {},
      // A request is always sent, without cookies and without the browser's cache.
      cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(70000),
    });
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    view.status.classList.add(response.ok ? "good" : "bad");
    const reason = response.statusText ? ` ${response.statusText}` : "";
    const size = new TextEncoder().encode(text).length;
    view.status.textContent = `${response.status}${reason} in ${took.toLocaleString("en")} ms, ${counted(size, "byte")}`;
    view.result.replaceChildren(...describe(response, text));
    suggestModels(operation, text);
  } catch (error) {
    const reason = error.name === "TimeoutError" ? "there was no response within 70 seconds" : "the service could not be reached";
    view.status.classList.add("bad");
    view.status.textContent = `No response: ${reason}.`;
  }
}

// Shows programs that send the request of a form. Returns the function that updates them.
function addSnippets(place, id, path, url) {
  const blocks = {};
  const choices = element("fieldset", { className: "languages", id: `${id}-languages` }, element("legend", {}, "The same request as a program"));
  place.append(choices);
  for (const language of Object.keys(SNIPPETS)) {
    const radio = element("input", { type: "radio", name: `${id}-language`, value: language, checked: language === "curl" });
    choices.append(element("label", {}, radio, ` ${language}`));
    const block = element("pre", { tabIndex: 0, role: "group" }, element("code"));
    block.setAttribute("aria-label", `${language} for ${path}`);
    place.append(block);
    const frame = addCopyButton(block);
    frame.hidden = !radio.checked;
    blocks[language] = { frame, code: block.firstChild };
    radio.addEventListener("change", () => {
      for (const [name, one] of Object.entries(blocks)) one.frame.hidden = name !== language;
    });
  }
  return () => {
    for (const [language, { code }] of Object.entries(blocks)) code.textContent = SNIPPETS[language](url());
  };
}

function buildForm(operation, place) {
  const id = `try-${operation.name}`;
  const controls = operation.parameters.map((parameter) => [parameter.name, control(parameter)]);
  const fields = controls.map(([name, one]) => labelled(`${id}-${name}`, name, one));
  const key = keyField(`${id}-key`);
  const button = element("button", { className: "button", type: "submit" }, "Send");
  const form = element("form", {}, element("div", { className: "inputs" }, key, ...fields), button);
  const view = {
    status: element("p", { className: "outcome", role: "status" }),
    result: element("div", { className: "result" }),
  };
  place.append(form, view.status, view.result);
  const target = () => requestTarget(operation, Object.fromEntries(controls.map(([name, one]) => [name, one.value])));
  const address = API.address ?? ownBase;
  const rewrite = addSnippets(place, id, operation.path, () => address + target());
  form.addEventListener("input", rewrite);
  rewrite();
  let isBusy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    button.setAttribute("aria-disabled", "true");
    await send(operation, target(), key.querySelector("input").value.trim(), view);
    button.removeAttribute("aria-disabled");
    isBusy = false;
  });
}

// A form is built when it is first opened.
for (const operation of API.operations) {
  const details = element("details", { className: "try" }, element("summary", {}, "Try it"));
  details.firstChild.setAttribute("aria-label", `Try it: GET ${operation.path}`);
  details.addEventListener("toggle", () => {
    const place = element("div", { className: "panel" });
    details.append(place);
    buildForm(operation, place);
  }, { once: true });
  document.querySelector(`#endpoint-${operation.name} h4`).before(details);
}
