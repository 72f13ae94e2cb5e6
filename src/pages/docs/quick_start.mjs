const answer = await fetch("BASE_ADDRESS/models?period=24h", {
  headers: { "X-API-Key": process.env.API_KEY },
});
const body = await answer.json();
if (!body.success) throw new Error(`${body.code}: ${body.message}`);
for (const model of body.data) console.log(model.name, model.currentScore ?? "unavailable");
