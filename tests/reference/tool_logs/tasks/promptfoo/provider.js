const answers = { France: 'Paris', Italy: 'Milan' };
module.exports = class { id() { return 'meridian/atlas-4'; } async callApi(prompt, context) {
  const country = context.vars.country;
  if (country === 'Spain') return { error: 'API error: 503 Service Unavailable' };
  return { output: answers[country], cost: 0.0021, tokenUsage: { total: 12, prompt: 10, completion: 2 } };
} };
