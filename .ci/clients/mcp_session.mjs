// The TypeScript client of the Model Context Protocol and its inspector: `mcp_session.mjs ADDRESS INSPECTOR`.
//
// Both list and call tools with PRO_KEY of the environment. The client calls every tool; a table states how many tokens its
// text has, and how many its structured content.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { countTokens } from "gpt-tokenizer";

const [address, inspector] = process.argv.slice(2);
const authorization = `Bearer ${process.env.PRO_KEY}`;

async function connect(headers) {
  const client = new Client({ name: "ci", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
  return client;
}

/** Calls each tool, and returns the tokens of its text and of its structured content. */
async function callEveryTool(client) {
  const { tools } = await client.listTools();
  const known = {};
  const tokens = {};
  for (const { name, inputSchema } of tools) {
    const wanted = Object.fromEntries(inputSchema.required.map((parameter) => [parameter, known[parameter]]));
    const { isError, content, structuredContent } = await client.callTool({ name, arguments: wanted });
    assert.equal(isError, false, name);
    known.id ??= structuredContent.data[0].id;
    tokens[name] = [countTokens(content[0].text), countTokens(JSON.stringify(structuredContent))];
  }
  return tokens;
}

function printTokens(tokens) {
  const sum = (column) => Object.values(tokens).reduce((total, row) => total + row[column], 0);
  const total = [sum(0), sum(1)];
  console.log("tokens of text, of structured content, share:");
  for (const [name, [text, structured]] of [...Object.entries(tokens), ["all tools", total]]) {
    const share = `${((100 * text) / structured).toFixed(1)} %`;
    console.log(`  ${name.padEnd(26)}${String(text).padStart(7)}${String(structured).padStart(8)}${share.padStart(8)}`);
  }
}

/** What the inspector prints. It fails if a schema of a tool is not portable. */
function inspect(era, ...parameters) {
  const header = `Authorization: ${authorization}`;
  const common = ["--cli", address, "--transport", "http", "--protocol-era", era, "--header", header];
  return JSON.parse(execFileSync(process.execPath, [inspector, ...common, ...parameters], { encoding: "utf8" }));
}

const client = await connect({ authorization });
const tokens = await callEveryTool(client);
await client.close();
const anonymous = await connect({});
await assert.rejects(anonymous.callTool({ name: "get_index", arguments: {} }), { code: 401 });
await anonymous.close();
const names = Object.keys(tokens);
for (const era of ["legacy", "modern"]) {
  const { tools } = inspect(era, "--method", "tools/list", "--strict");
  assert.deepEqual(tools.map((tool) => tool.name), names, era);
  const { content } = inspect(era, "--method", "tools/call", "--tool-name", "get_models");
  assert.match(content[0].text, /^\d+ items/, era);
}
console.log(`mcp of Node: ${names.length} tools called`);
printTokens(tokens);
