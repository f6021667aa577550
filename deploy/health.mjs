// The health of the process in this container, without curl: node health.mjs livez|readyz. Ends with 1 if it is not well.
const { OPS_PORT } = process.env;
const url = `http://127.0.0.1:${OPS_PORT || 9090}/${process.argv[2] ?? 'livez'}`;
try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) });
  console.log(answer.status, (await answer.text()).slice(0, 1_000));
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  console.log(`${url} does not answer: ${error.cause?.code ?? error.message}`);
  process.exitCode = 1;
}
