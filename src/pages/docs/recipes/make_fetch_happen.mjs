import makeFetchHappen from "make-fetch-happen";

const fetch = makeFetchHappen.defaults({
  cachePath: ".scores",
  headers: { authorization: `Bearer ${process.env.API_KEY}` },
});

export async function models() {
  const response = await fetch("BASE_ADDRESS/models");
  const body = await response.json();
  if (!body.success) throw new Error(`${body.code}: ${body.message}`);
  return body.data;
}
