// npx openapi-typescript DESCRIPTION_ADDRESS --output api.ts
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({
  baseUrl: "BASE_ADDRESS",
  headers: { Authorization: `Bearer ${process.env.API_KEY}` },
});
const { data, error } = await client.GET("/models", { params: { query: { period: "24h" } } });
if (error) throw new Error(`${error.code}: ${error.message}`);
for (const model of data.data) console.log(model.name, model.currentScore ?? "unavailable");
