// npx openapi-ts --input DESCRIPTION_ADDRESS --output client
import { models } from "./client/sdk.gen.js";

const { data, error } = await models({
  baseUrl: "BASE_ADDRESS",
  auth: process.env.API_KEY,
  query: { period: "24h" },
});
if (error) throw new Error(`${error.code}: ${error.message}`);
for (const model of data.data) console.log(model.name, model.currentScore ?? "unavailable");
