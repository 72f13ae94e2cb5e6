// Two clients that are generated from the description: openapi-typescript with openapi-fetch, and hey-api.
//
//   generated.js BASE_ADDRESS DESCRIPTION
//
// Both call a running gateway: data, a 304, and each error that a caller can provoke is a value of a type. Then each
// operation gets every example of an error in the description, from a transport without a network. The environment has
// PRO_KEY, FREE_KEY and the keys of two applications with two requests a minute and with one a day for each client:
// FETCH_MINUTE_KEY, FETCH_DAY_KEY, HEY_MINUTE_KEY and HEY_DAY_KEY.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import createFetchClient from "openapi-fetch";

import type { components, paths } from "./api.js";
import { createClient as createHeyClient, createConfig } from "./hey/client/index.js";
import * as hey from "./hey/sdk.gen.js";
import type { Error as HeyError } from "./hey/types.gen.js";

type ApiError = components["schemas"]["Error"];
type Code = ApiError["code"];

// The compiler rejects a code that is missing here, and one that the description does not have.
const CODES: Record<Code, number> = {
  bad_request: 400, invalid_model_id: 400, invalid_period: 400, invalid_sort_by: 400, invalid_limit: 400,
  invalid_parameter: 400,
  api_key_required: 401, invalid_api_key: 401, latest_requires_plan: 403, plan_required: 403, not_found: 404, model_not_found: 404,
  method_not_allowed: 405, uri_too_long: 414, quota_exceeded: 429, rate_limit_exceeded: 429, too_many_refusals: 429,
  headers_too_large: 431, internal_error: 500, upstream_invalid: 502, upstream_unavailable: 503, overloaded: 503,
  upstream_timeout: 504,
};
// Both generators have the same codes.
const same = (code: HeyError["code"]): Code => code;

interface Outcome {
  status: number;
  etag: string | null;
  items?: number;
  error?: ApiError | HeyError;
}
interface Query { period?: "latest" | "24h" | "7d" | "1m"; sortBy?: "combined" | "price" }
interface ApiClient {
  models(query: Query, etag?: string): Promise<Outcome>;
  model(id: string): Promise<Outcome>;
  incidents(limit: number): Promise<Outcome>;
}
type Fetch = typeof fetch;

const [base, path] = process.argv.slice(2) as [string, string];
const description = JSON.parse(readFileSync(path, "utf8"));

function fetchClient(key: string | undefined, transport: Fetch = fetch): ApiClient {
  const headers = key === undefined ? {} : { "X-API-Key": key };
  const client = createFetchClient<paths>({ baseUrl: base, headers, fetch: (request) => transport(request) });
  const outcome = ({ data, error, response }: { data?: { data: unknown[] }; error?: ApiError; response: Response }) => ({
    status: response.status, etag: response.headers.get("etag"), items: data?.data.length, error,
  });
  return {
    models: async (query, etag) => outcome(await client.GET("/models", {
      params: { query, header: etag === undefined ? {} : { "If-None-Match": etag } },
    })),
    model: async (id) => outcome(await client.GET("/models/{id}", { params: { path: { id } } })),
    incidents: async (limit) => outcome(await client.GET("/incidents", { params: { query: { limit } } })),
  };
}

function heyClient(key: string | undefined, transport: Fetch = fetch): ApiClient {
  const headers = key === undefined ? {} : { "X-API-Key": key };
  const client = createHeyClient(createConfig({ baseUrl: base, headers, fetch: transport }));
  const outcome = ({ data, error, response }: { data?: { data: unknown[] } | {}; error?: HeyError; response?: Response }) => ({
    status: response?.status ?? 0, etag: response?.headers.get("etag") ?? null,
    items: data !== undefined && "data" in data ? data.data.length : undefined, error,
  });
  return {
    models: async (query, etag) =>
      outcome(await hey.models({ client, query, headers: etag === undefined ? {} : { "If-None-Match": etag } })),
    model: async (id) => outcome(await hey.model({ client, path: { id } })),
    incidents: async (limit) => outcome(await hey.incidents({ client, query: { limit } })),
  };
}

function expectError(outcome: Outcome, code: Code): ApiError | HeyError {
  const error = outcome.error;
  assert.ok(error, `${code}: no error but ${JSON.stringify(outcome)}`);
  assert.deepEqual([outcome.status, error.status, same(error.code)], [CODES[code], CODES[code], code]);
  return error;
}

async function live(name: string, make: (key?: string) => ApiClient): Promise<void> {
  const pro = make(process.env.PRO_KEY);
  const first = await pro.models({ period: "7d", sortBy: "price" });
  assert.ok(first.status === 200 && first.items! > 0 && first.etag, JSON.stringify(first));
  const again = await pro.models({ period: "7d", sortBy: "price" }, first.etag);
  assert.deepEqual([again.status, again.items], [304, undefined]);
  assert.equal((await pro.incidents(1)).status, 200);

  expectError(await make().models({}), "api_key_required");
  expectError(await make("wrong").models({}), "invalid_api_key");
  const plan = expectError(await make(process.env.FREE_KEY).models({ period: "latest" }), "latest_requires_plan");
  assert.deepEqual(plan.allowed, ["24h", "7d", "1m"]);
  expectError(await pro.model("no-such-model"), "model_not_found");
  expectError(await pro.model("a/b"), "invalid_model_id");
  expectError(await pro.models({ period: "7D" as "7d" }), "invalid_period");
  expectError(await pro.models({ sortBy: "name" as "price" }), "invalid_sort_by");
  const range = expectError(await pro.incidents(101), "invalid_limit");
  assert.deepEqual([range.minimum, range.maximum], [1, 100]);
  expectError(await pro.model("x".repeat(2_100)), "uri_too_long");

  const minute = make(process.env[`${name}_MINUTE_KEY`]);
  await minute.model("no-such-model");
  await minute.model("no-such-model");
  const wait = expectError(await minute.models({}), "rate_limit_exceeded").limit?.retry_after;
  assert.ok(wait !== undefined && wait > 0 && wait <= 60, String(wait));
  const day = make(process.env[`${name}_DAY_KEY`]);
  assert.equal((await day.models({})).status, 200);
  assert.equal(expectError(await day.models({}), "quota_exceeded").limit?.name, "day");
}

/** Every example of an error of these operations. */
function* examples(operation: string): Generator<[number, Code, string]> {
  for (const [status, { $ref }] of Object.entries<{ $ref: string }>(description.paths[operation].get.responses)) {
    const response = description.components.responses[$ref.split("/").at(-1)!];
    const found: Record<string, { value: unknown }> = response.content?.["application/json"].examples ?? {};
    for (const [code, example] of Object.entries(found)) {
      yield [Number(status), code as Code, JSON.stringify(example.value)];
    }
  }
}

async function replay(make: (key: string | undefined, transport: Fetch) => ApiClient): Promise<Set<Code>> {
  let sent: [number, Code, string] = [0, "not_found", ""];
  const headers = { "Content-Type": "application/json" };
  const client = make("key", async () => new Response(sent[2], { status: sent[0], headers }));
  const calls: [string, () => Promise<Outcome>][] = [
    ["/models", () => client.models({})], ["/models/{id}", () => client.model("m")], ["/incidents", () => client.incidents(1)],
  ];
  const seen = new Set<Code>();
  for (const [operation, call] of calls) {
    for (sent of examples(operation)) {
      expectError(await call(), sent[1]);
      seen.add(sent[1]);
    }
  }
  return seen;
}

for (const [name, make] of [["FETCH", fetchClient], ["HEY", heyClient]] as const) {
  await live(name, make);
  const seen = await replay(make);
  // One code belongs to no operation, and one to those of settings only.
  const rest = Object.keys(CODES).filter((code) => !seen.has(code as Code));
  assert.deepEqual(rest, ["invalid_parameter", "method_not_allowed"]);
  console.log(`${name}: data, 304 and ${seen.size} codes are values of a type`);
}
