import axios from "axios";
import { setupCache } from "axios-cache-interceptor";

const client = axios.create({
  baseURL: "BASE_ADDRESS",
  headers: { Authorization: `Bearer ${process.env.API_KEY}` },
});
// axios adds Accept-Encoding after the cache has compared the headers.
const api = setupCache(client, { vary: ["authorization"] });
api.location = "client"; // the cache of one application, not of a proxy

export async function models() {
  return (await api.get("/models")).data.data;
}
