/** Receivers that speak HTTP wrongly, or in an unusual order. */
import t, { type Test } from 'tap';
import { senderOf, startRaw } from '../../../support/webhooks/sending.js';

/** An endpoint that answers each request with these pieces, one after the other. */
function answeringRaw(t: Test, pieces: readonly string[]): Promise<string> {
  return startRaw(t, (socket) => {
    socket.on('data', () => {
      void (async () => {
        for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
      })();
    });
  });
}

t.test('100 Continue before a response is accepted in every form', async (t) => {
  const go = 'HTTP/1.1 100 Continue\r\n\r\n';
  const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks';
  const ways: [what: string, pieces: string[]][] = [
    ['not at all', [answer]],
    ['at once', [go + answer]],
    ['by itself', [go, answer]],
    ['with headers', [`HTTP/1.1 100 Continue\r\nx: y\r\n\r\n${answer}`]],
    ['twice', [go + go, answer]],
    ['byte by byte', [...(go + answer)]],
    ['with the answer cut', [`${go}HTTP/1.1 2`, answer.slice('HTTP/1.1 2'.length)]],
    [
      'before early hints',
      [`${go}HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${go}`.slice(0, -go.length) + answer],
    ],
  ];
  for (const [what, pieces] of ways) {
    const send = senderOf(t);
    const url = await answeringRaw(t, pieces);
    for (const time of ['first', 'again']) {
      const result = await send(url);
      t.match(result, { outcome: 'delivered', status: 200, answer: 'thanks' }, `${what}, ${time}`);
    }
  }
});

t.test('a receiver that sends interim answers without end is cut off', async (t) => {
  for (const [head, error] of [
    ['HTTP/1.1 100 Continue\r\n\r\n', 'bad response'],
    ['HTTP/1.1 100 Continue\r\nx: y\r\n\r\n', 'bad response'],
    ['HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n', 'too many interim answers'],
  ] as const) {
    const url = await startRaw(t, (socket) => {
      const goOn = () => void (socket.destroyed || (socket.write(head.repeat(100)) && setImmediate(goOn)));
      socket.on('drain', goOn).once('data', goOn);
    });
    const result = await senderOf(t, { timeoutMs: 600_000 })(url);
    t.match(result, { outcome: 'failed', error }, head);
  }
});

t.test('a malformed HTTP response is described in words', async (t) => {
  const answers = [
    'HTTP/1.1 100 Continue',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 099 Odd\r\n\r\n',
    'HTTP/1.1 000 Odd\r\n\r\n',
    'HTTP/1.1 1 Odd\r\n\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
    '\0\0\0',
  ];
  for (const text of answers) {
    const url = await startRaw(t, (socket) => void socket.once('data', () => socket.end(text)));
    const { outcome, error } = await senderOf(t)(url);
    t.equal(outcome, 'failed', text);
    t.match(error, /./, text);
    t.notMatch(error, /assert|expression|falsy|===|>=/i, text);
  }
});
