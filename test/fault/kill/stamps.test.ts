/** Time stamps over signatures when an API is killed around their storage, and when two make one at once. */
import t from 'tap';
import { statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startStampAuthority } from '../../support/witnesses/stamp-authority.js';

const authority = await startStampAuthority(t);
const scene = await setScene(t);
const { installation, pool, servers, tsa, apiKey } = scene;
const { proxy } = servers.postgres;
installation.env.WITNESSES = JSON.stringify([tsa.setting('foreign'), authority.setting('stamps')]);
const acknowledged: Acknowledged[] = [];
const api = await installation.startApi();
const other = await installation.startApi();
await installation.startWorker();

type Found = { stamps: { signedTimestamp: string }[]; isPending: boolean };

async function read(baseUrl: string, id: string): Promise<Found> {
  const answer = await fetch(`${baseUrl}/v1/attestations/${id}/bundle`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  if (answer.status !== 200) throw new Error(`a bundle answered ${answer.status}`);
  const { sigstore_bundle, stamp_pending = false } = (await answer.json()) as {
    sigstore_bundle: {
      verificationMaterial: { timestampVerificationData?: { rfc3161Timestamps: Found['stamps'] } };
    };
    stamp_pending?: boolean;
  };
  const { timestampVerificationData } = sigstore_bundle.verificationMaterial;
  return { stamps: timestampVerificationData?.rfc3161Timestamps ?? [], isPending: stamp_pending };
}

function untilStamped(baseUrl: string, id: string): Promise<Found> {
  return until('the bundle has a stamp', async () => {
    const found = await read(baseUrl, id);
    return !found.isPending && found;
  });
}

async function submit(): Promise<string> {
  const creation = newCreation();
  const made = acknowledgement(creation, await send(other.baseUrl, apiKey, creation));
  acknowledged.push(made);
  await untilWitnessed(pool);
  return made.id;
}

async function countStamps(id: string): Promise<number> {
  const rows = await pool`
    SELECT FROM signature_stamp t JOIN submission s USING (log_id, log_index) WHERE s.id = ${id}`;
  return rows.length;
}

// Verifiers trust the authority from the second after the worker has stored it.
await untilStamped(other.baseUrl, await submit());

for (const [when, stored] of [
  ['before the request arrives', 0],
  ['before the answer arrives', 1],
] as const) {
  t.test(`an API is killed while it stores a stamp, ${when}`, async (t) => {
    const id = await submit();
    const { asked } = authority;
    const doomed = await installation.startApi();
    const held = proxy.holdNext(when, statement('INSERT INTO signature_stamp'));
    const lost = read(doomed.baseUrl, id).catch(() => undefined);
    await held;
    await doomed.kill();
    await lost;
    t.equal(await countStamps(id), stored);
    const found = await untilStamped(api.baseUrl, id);
    t.same(found, { stamps: [found.stamps[0]], isPending: false });
    t.equal(await countStamps(id), 1);
    t.equal(authority.asked - asked, 2 - stored, 'a stamp that was stored is the one');
    t.same(await read(other.baseUrl, id), found, 'of both processes');
    await scene.assertConsistent(t, acknowledged);
  });
}

t.test('two processes that stamp at once serve the stamp that was stored first', async (t) => {
  const id = await submit();
  const { asked } = authority;
  authority.delayMs = 300;
  const found = await Promise.all([read(api.baseUrl, id), read(other.baseUrl, id)]);
  authority.delayMs = 0;
  t.equal(authority.asked - asked, 2, 'both have asked');
  t.equal(found[0].stamps.length, 1);
  t.same(found[0], found[1]);
  t.equal(await countStamps(id), 1);
  t.same(await read(api.baseUrl, id), found[0]);
});
