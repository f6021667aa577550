import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import t from 'tap';
import { Client } from 'undici';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { openSocket, readToClose } from '../../../support/calling/raw-http.js';
import { callers } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer, type TestServer } from '../../../support/servers/api-server.js';

const { getBatch } = BatchService.method;
const HEADERS = { authorization: `Bearer ${KEYS.all}` };

/** Resolves when so many calls have reached a handler. */
async function called({ calls }: TestServer, n: number): Promise<void> {
  while (calls.length < n) await new Promise(setImmediate);
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

t.test('calls under way are answered on every surface before the server is closed', async (t) => {
  const { opened, open } = gate();
  const api = await startApiServer(t, { gate: opened });
  const all = callers(api.baseUrl);
  const answers = all.map((caller) => caller.call(getBatch, { id: 'btc_gate' }, { headers: HEADERS }));
  await called(api, all.length);
  const closed = api.server.close();
  t.equal(api.server.close(), closed, 'closing twice is closing once');
  await t.rejects(openSocket(api.port), { code: 'ECONNREFUSED' });
  open();
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    t.equal(answer.code, 'ok', all[index]?.name ?? '');
  }
  await closed;
  for (const caller of all) caller.close();
});

t.test('no accepted request is dropped under load', async (t) => {
  const api = await startApiServer(t, { limits: { idleGraceMs: 2_000 } });
  let answered = 0;
  const clients = Array.from({ length: 24 }, () => new Client(api.baseUrl));
  const sessions = Array.from({ length: 4 }, () => connectHttp2(api.baseUrl));
  await Promise.all(sessions.map((session) => once(session, 'remoteSettings')));
  const http1 = clients.map(async (client, index) => {
    for (let last = false; !last; ) {
      const rest = index % 2 === 0;
      const answer = await client.request({
        method: rest ? 'GET' : 'POST',
        path: rest ? '/v1/service/health' : '/attestation.v1.InfoService/GetHealth',
        headers: { ...HEADERS, ...(rest ? {} : { 'content-type': 'application/json' }) },
        body: rest ? null : '{}',
      });
      t.match(await answer.body.json(), { status: 'ok' });
      answered++;
      last = answer.headers.connection === 'close';
    }
  });
  const http2 = sessions.flatMap((session) =>
    Array.from({ length: 8 }, async () => {
      while (!session.closed) {
        t.equal(await getHealth(session), '{"status":"ok"}');
        answered++;
      }
    }),
  );
  while (answered < 2_000) await new Promise(setImmediate);
  await api.server.close();
  await Promise.all([...http1, ...http2]);
  t.ok(api.observations.every(({ status }) => status === 200));
  t.equal(api.observations.length, answered);
});

async function getHealth(session: ClientHttp2Session): Promise<string> {
  const stream = session.request({ ':path': '/v1/service/health', ...HEADERS });
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return text;
}

t.test('connections that do nothing do not hold it up', async (t) => {
  const api = await startApiServer(t, { limits: { graceMs: 60_000 } });
  const silent = await openSocket(api.port);
  const undecided = await openSocket(api.port);
  undecided.write('PR');
  const session = connectHttp2(api.baseUrl);
  await once(session, 'remoteSettings');
  const client = new Client(api.baseUrl);
  const { body } = await client.request({ method: 'GET', path: '/v1/service/health', headers: HEADERS });
  await body.dump();
  const ends = [readToClose(silent), readToClose(undecided), once(session, 'close')];
  await api.server.close();
  await Promise.all(ends);
  await client.close();
});

t.test('a call that does not end is cut off when the grace is over', async (t) => {
  const api = await startApiServer(t, { limits: { graceMs: 50 } });
  const all = callers(api.baseUrl);
  const answers = all.map((caller) =>
    caller.call(getBatch, { id: 'btc_never' }, { headers: HEADERS }).catch(() => ({ code: 'broken off' })),
  );
  await called(api, all.length);
  await api.server.close();
  for (const answer of await Promise.all(answers)) t.not(answer.code, 'ok');
  for (const caller of all) caller.close();
  t.ok(api.calls.every(({ signal }) => signal().aborted));
});

t.test('pipelined requests that never get their turn are over with the connection', async (t) => {
  const api = await startApiServer(t);
  const socket = await openSocket(api.port);
  for (const id of ['btc_never', 'btc_1', 'btc_never']) {
    socket.write(
      `GET /v1/batches/${id} HTTP/1.1\r\nhost: a\r\nauthorization: ${HEADERS.authorization}\r\n\r\n`,
    );
  }
  await called(api, 3);
  socket.destroy();
  await api.server.close();
  t.equal(api.observations.length, 3);
  t.ok(api.calls.filter((_call, index) => index !== 1).every(({ signal }) => signal().aborted));
});

t.test('however many requests are pipelined, nothing of them stays on the connection', async (t) => {
  const api = await startApiServer(t);
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.teardown(() => process.off('warning', note));
  const socket = await openSocket(api.port);
  const requests = 200;
  socket.write(
    `GET /v1/batches/btc_1 HTTP/1.1\r\nhost: a\r\nauthorization: ${HEADERS.authorization}\r\n\r\n`.repeat(
      requests,
    ),
  );
  await called(api, requests);
  socket.end();
  const answers = await readToClose(socket);
  t.equal(answers.split('HTTP/1.1 200').length - 1, requests);
  t.same(warnings, []);
});
