// Requests as text: the URL of an operation with its values, and programs that send it.

// Encodes a value for a URL. Only letters, digits and -._~ remain, so no value has a meaning for a shell or a program.
function percentEncode(text) {
  const encoded = encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
  return encoded.replace(/[!'()*]/g, (char) => "%" + char.charCodeAt(0).toString(16).toUpperCase());
}

// Path and query of an operation below the base address. Empty values are omitted. An empty model id becomes a
// placeholder.
function requestTarget(operation, values) {
  const path = operation.path.replace(/\{(\w+)\}/g, (whole, name) => percentEncode(values[name] || "MODEL_ID"));
  const given = operation.parameters.filter((one) => one.in === "query" && values[one.name]);
  const query = given.map((one) => `${percentEncode(one.name)}=${percentEncode(values[one.name])}`).join("&");
  return query ? `${path}?${query}` : path;
}

const shellText = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// JSON strings in ASCII are valid Python and JavaScript strings.
const programText = (text) => JSON.stringify(text);

const SNIPPETS = {
  curl: (url) => `curl --compressed -H "X-API-Key: $API_KEY" \\\n  ${shellText(url)}`,
  Python: (url) => `import json, os, urllib.error, urllib.request

request = urllib.request.Request(
    ${programText(url)},
    headers={"X-API-Key": os.environ["API_KEY"]},
)
try:
    with urllib.request.urlopen(request, timeout=60) as response:
        print(json.dumps(json.load(response), indent=2))
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`,
  JavaScript: (url) => `const response = await fetch(${programText(url)}, {
  headers: { "X-API-Key": process.env.API_KEY },
});
console.log(response.status, await response.json());`,
};

// Indents JSON text and leaves its tokens unchanged, so that numbers keep their digits.
function indentJson(text) {
  const parts = [];
  let depth = 0;
  const newLine = () => parts.push("\n" + "  ".repeat(depth));
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  tokens.forEach((token, at) => {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (tokens[at - 1] !== "{" && tokens[at - 1] !== "[") newLine();
      parts.push(token);
    } else if (token === "{" || token === "[") {
      depth += 1;
      parts.push(token);
      if (tokens[at + 1] !== "}" && tokens[at + 1] !== "]") newLine();
    } else if (token === ",") {
      parts.push(token);
      newLine();
    } else {
      parts.push(token === ":" ? ": " : token);
    }
  });
  return parts.join("");
}
