// Creations of a tenant that are refused, one after the other as fast as the answers come.
import { Agent, request } from 'undici';
import type { Attack, Target } from '../attack.js';

export const attacks: Attack[] = [
  { name: '13: 2,000 invalid creations of 63 KB', run: sendInvalid },
  { name: '13: 20,000 creations of an unknown schema', run: sendUnknown },
];

const CONCURRENT = 32;
const ARTIFACT = { sha256: 'ab'.repeat(32) };

function sendInvalid(target: Target): Promise<number> {
  const resolvedDependencies = Array.from({ length: 21_000 }, () => ({}));
  const metadata = { schema: 'slsa.provenance.v1', buildDefinition: { resolvedDependencies } };
  return send(target, JSON.stringify({ artifact: ARTIFACT, metadata }), 2_000);
}

function sendUnknown(target: Target): Promise<number> {
  return send(target, JSON.stringify({ artifact: ARTIFACT, metadata: { schema: 'nothing' } }), 20_000);
}

async function send(target: Target, body: string, count: number): Promise<number> {
  const headers = { authorization: `Bearer ${await target.makeKey()}`, 'content-type': 'application/json' };
  const dispatcher = new Agent({ connections: CONCURRENT });
  let left = count;
  const sendSome = async () => {
    while (left-- > 0) {
      const answer = await request(`${target.baseUrl}/v1/attestations`, {
        method: 'POST',
        headers,
        body,
        dispatcher,
      });
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, sendSome));
  await dispatcher.close();
  return count * body.length;
}
