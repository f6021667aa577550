// HTTP/1.1 by hand, for what no client would send.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Test } from 'tap';

/** An answer as its bytes say. */
export type RawAnswer = { status: number; headers: Record<string, string>; body: string };

export function openSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Everything the server sends until it closes the connection, however it does. */
export function readToClose(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(text));
  });
}

/** Sends bytes on a connection of their own and reads until the server closes it. */
export async function exchangeRaw(port: number, bytes: string | Uint8Array): Promise<string> {
  const socket = await openSocket(port);
  const answer = readToClose(socket);
  socket.write(bytes);
  return answer;
}

/** Takes an answer apart; throws when it is none. */
export function parseRaw(text: string): RawAnswer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const [statusLine = '', ...lines] = head.split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`no answer of HTTP/1.1: ${JSON.stringify(text.slice(0, 80))}`);
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), headers: Object.fromEntries(headers), body };
}

/** The subject of the certificate a TLS server shows, and the protocol it picks. */
export function peekTls(port: number, protocols: string[]): Promise<{ subject: string; protocol: string }> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, rejectUnauthorized: false, ALPNProtocols: protocols }, () => {
      const subject = socket.getPeerCertificate().subject.CN;
      resolve({ subject: String(subject), protocol: String(socket.alpnProtocol) });
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/** Asserts that an answer is an error envelope. */
export function isEnvelope(t: Test, text: string, status: number, code: string): void {
  const answer = parseRaw(text);
  const { error } = JSON.parse(answer.body);
  t.equal(answer.status, status);
  t.equal(error.code, code);
  t.match(error.request_id, /^req_/);
  if (code === 'request.invalid') t.match(error.details, { errors: [{ path: /^/, message: /./ }] });
  t.equal(answer.headers['x-request-id'], error.request_id);
}

/** Length-prefixed as gRPC wants it. */
export function enveloped(flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}
