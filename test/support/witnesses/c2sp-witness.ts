/** A C2SP witness over HTTP that is honest until the test says otherwise. */
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { monitoringPath } from '../../../src/proof/log/add-checkpoint.js';
import { cosign } from '../../../src/proof/log/cosignature.js';
import {
  COSIGNATURE_V1_KEY,
  encodeSignatureLine,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  type NoteKey,
  noteKey,
} from '../../../src/proof/log/note.js';
import { listen } from '../../../src/server/core/http/listen.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { type Answer, createCosigner, type KnownLog } from '../../../src/server/cosigner/cosigner.js';
import { openHistory } from '../../../src/server/cosigner/history.js';
import {
  type CosignerKey,
  newCosignerKeyPem,
  parseCosignerKey,
} from '../../../src/server/keys/cosigner-key.js';

/** What it does with a request instead of answering it: `undefined` answers it, `hang` never does. */
export type Behaviour = (
  request: string,
) => Answer | 'hang' | undefined | Promise<Answer | 'hang' | undefined>;

export type C2spWitness = {
  url: string;
  /** Its keys: Ed25519, then ML-DSA-44. */
  keys: readonly NoteKey[];
  verifierKeys: readonly string[];
  behaviour: Behaviour;
  /** What it does with a request for a checkpoint, of which it has this note. */
  monitored: (note: string | undefined) => Answer | 'hang' | undefined;
  /** Its cosignatures over a body that it has checked nothing of. */
  sign(body: string): string;
  /** The bodies of all requests. */
  requests: string[];
};

const NAME = 'witness.example/w1';
const TYPES = { ed25519: COSIGNATURE_V1_KEY, 'ml-dsa-44': ML_DSA_44_NOTE_KEY };

/** A new cosigner key under a name. */
export function newCosigner(name: string, algorithm: CosignerKey['algorithm']) {
  const key = parseCosignerKey(newCosignerKeyPem(algorithm));
  return { ...noteKey(name, key.publicKey, TYPES[algorithm]), sign: key.sign };
}

/** Serves a witness of these logs until the test ends. */
export async function startC2spWitness(test: Test, logs: readonly KnownLog[]): Promise<C2spWitness> {
  const cosigners = [newCosigner(NAME, 'ed25519'), newCosigner(NAME, 'ml-dsa-44')];
  const history = await openHistory(test.testdir());
  const log = createLogger({ level: 'silent' });
  const honest = createCosigner({ logs, cosigners, history, nowMs: Date.now, log });
  const monitor = async (url: string) => {
    const known = logs.find(({ origin }) => monitoringPath(origin) === url.split('?')[0]);
    const note = known && (await history.findNote(known.origin));
    return (
      witness.monitored(note) ?? { status: note ? 200 : 404, contentType: 'text/plain', body: note ?? '' }
    );
  };
  const cosignIt = async (body: string) => {
    witness.requests.push(body);
    return (await witness.behaviour(body)) ?? (await honest(body));
  };
  const server = createServer((request: IncomingMessage, response) => {
    void text(request).then(async (body) => {
      const answer = await (request.method === 'GET' ? monitor(request.url ?? '') : cosignIt(body));
      if (answer === 'hang') return;
      response.writeHead(answer.status, { 'content-type': answer.contentType }).end(answer.body);
    });
  });
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const keys = cosigners.map(({ sign: _, ...key }) => key);
  const witness: C2spWitness = {
    url: `http://127.0.0.1:${port}`,
    keys,
    verifierKeys: keys.map(encodeVerifierKey),
    behaviour: () => undefined,
    monitored: () => undefined,
    sign: (body) =>
      cosigners.map((one) => encodeSignatureLine(cosign(body, Math.floor(Date.now() / 1000), one))).join(''),
    requests: [],
  };
  return witness;
}
