import got from "got";

const api = got.extend({
  prefixUrl: "BASE_ADDRESS",
  headers: { authorization: `Bearer ${process.env.API_KEY}` },
  cache: new Map(),
  cacheOptions: { shared: false }, // the cache of one application, not of a proxy
});

export async function models() {
  return (await api("models").json()).data;
}
