/** What nodes and networks do to requests. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { jsonRpcClient } from '../../../../../src/server/witnessing/clients/evm/json-rpc.js';
import {
  answerRaw,
  hang,
  isMethod,
  loseAnswer,
  refuse,
  startFaultProxy,
} from '../../../../support/breaking/fault-proxy.js';
import {
  ask,
  countTransactions,
  evmScene,
  poll,
  pollPending,
  pollUntilLanded,
} from '../../../../support/witnesses/evm/scene.js';

const KEY = 'k3y-0123456789abcdef';
const JSON_TYPE = { 'content-type': 'application/json' };

/** A node that answers every request in the same way. */
async function startNode(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const call = (url: string, timeoutMs = 5_000, maxBytes = 1_000) =>
  jsonRpcClient({}, { url, timeoutMs, maxBytes }, new AbortController().signal)('eth_chainId', []);

t.test('an answer that is not JSON-RPC is one short line', async (t) => {
  const cases: [status: number, body: string, message: RegExp][] = [
    [200, '', /^127\.0\.0\.1:\d+ answered eth_chainId with something that is not JSON-RPC$/],
    [200, '<html>', /not JSON-RPC$/],
    [200, '[]', /not JSON-RPC$/],
    [200, 'null', /not JSON-RPC$/],
    [200, '{"result":', /not JSON-RPC$/],
    [200, '{"jsonrpc":"2.0","id":1}', /not JSON-RPC$/],
    [502, '<html>', /answered eth_chainId with status 502$/],
    [429, '{"error":{"code":-32005,"message":"slow\\n\\u001b[31mdown"}}', /with: slow \[31mdown$/],
    [200, '{"error":"no"}', /with: an error without a message$/],
    [200, '{"error":{"message":7}}', /with: an error without a message$/],
    [200, JSON.stringify({ error: { message: 'x'.repeat(900) } }), /with: x{200}$/],
    [200, `{"result":"${'x'.repeat(2_000)}"}`, /more than 1000 bytes$/],
  ];
  for (const [status, body, message] of cases) {
    const url = await startNode(t, (_request, response) => response.writeHead(status, JSON_TYPE).end(body));
    await t.rejects(call(url), { message }, body.slice(0, 40));
  }
});

t.test('no error names more of the URL than its host', async (t) => {
  const echo: RequestListener = (request, response) =>
    response.end(
      JSON.stringify({ error: { message: `http://${request.headers.host}${request.url} has no quota` } }),
    );
  const paths = [`/v3/${KEY}`, `/?apikey=${KEY}`, `/${KEY}/rpc?token=${KEY}&a=b`];
  const listeners: RequestListener[] = [
    echo,
    (_request, response) => response.writeHead(401).end(),
    (request) => request.socket.destroy(),
    () => {},
  ];
  for (const listener of listeners) {
    const url = await startNode(t, listener);
    for (const path of paths) {
      const error = await call(`${url}${path}`, 200).catch((caught: unknown) => caught);
      t.ok(error instanceof Error);
      t.notMatch(String(error), KEY);
    }
  }
});

t.test(
  'a node that is dead, slow, silent or sends garbage fails a call, and the state continues later',
  async (t) => {
    const scene = await evmScene(t);
    const proxy = await startFaultProxy(t, scene.anvil.url);
    const witness = scene.witness({ url: proxy.url, timeoutMs: 300 });
    const asked = await ask(witness);
    const isCall = isMethod('POST');
    const head = 'HTTP/1.1 200 OK\r\n\r\n';
    const faults = [
      hang,
      answerRaw('rubbish'),
      answerRaw(head, { forever: ' '.repeat(1 << 16) }),
      refuse(503),
    ];
    for (const fault of faults) {
      const broken = proxy.breakNext(isCall, fault);
      await t.rejects(poll(witness, asked), { message: /^(?!.*\n).{1,200}$/ });
      await broken;
    }
    await t.rejects(poll(scene.witness({ url: 'http://127.0.0.1:1' }), asked), { message: /ECONNREFUSED/ });
    await pollUntilLanded(scene.anvil, witness, asked);
  },
);

t.test('a transaction whose response is lost was sent, and is not paid for twice', async (t) => {
  const scene = await evmScene(t);
  const proxy = await startFaultProxy(t, scene.anvil.url);
  const witness = scene.witness({ url: proxy.url });
  const asked = await ask(witness);
  // Chain, receipt, nonce, block and tip come before it.
  const before = proxy.requests.length;
  await pollPending(scene.witness(), asked);
  let seen = 0;
  const isSending = () => ++seen === 6;
  const lost = proxy.breakNext(isSending, loseAnswer);
  await t.rejects(poll(witness, asked), { message: /cannot be asked/ });
  await lost;
  t.equal(proxy.requests.length - before, 6);
  await pollUntilLanded(scene.anvil, witness, asked);
  t.equal(await countTransactions(scene), 1);
});

t.test('an aborted call ends', async (t) => {
  const url = await startNode(t, () => {});
  const aborting = new AbortController();
  const calling = jsonRpcClient(
    {},
    { url, timeoutMs: 60_000, maxBytes: 1_000 },
    aborting.signal,
  )('eth_chainId', []);
  aborting.abort();
  await t.rejects(calling, { message: 'the request was aborted' });
});
