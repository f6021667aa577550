/** Time stamps over signatures: made when a bundle is first read, stored once, and in every form of the bundle. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { SigstoreBundle } from '../../../../src/proof/bundle/sigstore-bundle.js';
import { verifyTimestamp } from '../../../../src/proof/rfc3161/verify-timestamp.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { verifyWithSigstore } from '../../../support/judging/foreign-verifiers.js';
import { until } from '../../../support/until.js';
import { startStampAuthority } from '../../../support/witnesses/stamp-authority.js';
import { submit, submitWitnessed } from '../../rpc/submitting.js';

const authority = await startStampAuthority(t);
const env = { PUBLIC_LOOKUP: 'true', WITNESSES: JSON.stringify([authority.setting('stamps')]) };
const app = await startApp(t, { apis: 2, env });
const owner = await newKey(app);
const { downloadBundle, getAttestation, getBundle } = AttestationService.method;
const surfaces = [...app.surfaces(), ...app.surfaces(app.baseUrls[1])];

type Read = {
  json: JsonObject;
  stamps: string[];
  isPending: boolean;
  retryAfter: string | undefined;
  ms: number;
};

async function read(id: string, path = 'bundle'): Promise<Read> {
  const startMs = performance.now();
  const { status, json, headers } = await app.rest(`/v1/attestations/${id}/${path}`, { apiKey: owner.key });
  if (status !== 200) throw new Error(`${path} answered ${status}`);
  return {
    json,
    stamps: stampsOf((json.sigstore_bundle ?? json) as unknown as SigstoreBundle),
    isPending: json.stamp_pending === true,
    retryAfter: headers['retry-after'],
    ms: performance.now() - startMs,
  };
}

function stampsOf({ verificationMaterial }: SigstoreBundle): string[] {
  const { rfc3161Timestamps = [] } = verificationMaterial.timestampVerificationData ?? {};
  return rfc3161Timestamps.map(({ signedTimestamp }) => signedTimestamp);
}

/** Reads a bundle until it has a stamp: an authority that failed is left alone for a while. */
function untilStamped(id: string): Promise<Read> {
  return until('the bundle has a stamp', async () => {
    const found = await read(id);
    return found.stamps.length > 0 && found;
  });
}

// Verifiers trust the authority from the second after the worker has stored it.
await untilStamped((await submitWitnessed(app, owner)).id);

t.test(
  'a bundle has a stamp when it is first read, and the same one in every form and process',
  async (t) => {
    const { id } = await submitWitnessed(app, owner);
    const { asked } = authority;
    const first = await read(id);
    t.match(first, { stamps: { length: 1 }, isPending: false, retryAfter: undefined });
    t.notOk('stamp_pending' in first.json);
    const [response = ''] = first.stamps;
    const { sig } = (first.json.sigstore_bundle as unknown as SigstoreBundle).dsseEnvelope.signatures[0]!;
    await verifyTimestamp({
      response: Buffer.from(response, 'base64'),
      stamped: { message: Buffer.from(sig, 'base64') },
      chains: [authority.chain],
    });

    t.same((await read(id, 'bundle.json')).json, first.json);
    t.same((await read(id, 'bundle.sigstore.json')).json, first.json.sigstore_bundle);
    for (const { name, call } of surfaces) {
      const bundle = await call(getBundle, { id }, owner.key);
      t.same(stampsOf(bundle.response.sigstoreBundle as unknown as SigstoreBundle), first.stamps, name);
      const submission = await call(getAttestation, { id }, owner.key);
      const { sigstoreBundle } = submission.response.bundle as { sigstoreBundle: unknown };
      t.same(stampsOf(sigstoreBundle as SigstoreBundle), first.stamps, name);
      t.notOk('retry-after' in submission.headers);
      const format = 'bundle.sigstore.json';
      const { data } = (await call(downloadBundle, { id, format }, owner.key)).response;
      t.same(stampsOf(JSON.parse(Buffer.from(String(data), 'base64').toString())), first.stamps, name);
    }
    t.equal(authority.asked, asked + 1, 'one request');
  },
);

t.test('verification names the stamp for what it is', async (t) => {
  const { id, artifactSha256 } = await submitWitnessed(app, owner);
  const { json } = await read(id);
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  const { verdict, steps } = await verifyBundle(json, { trustRoots, artifactSha256, now: new Date() });
  t.equal(verdict, 'verified', JSON.stringify(steps));
  t.match(JSON.stringify(steps), /stamps stamped the signature no later than/);
});

t.test('the defaults of @sigstore/verify accept a bundle with a stamp, and none without', async (t) => {
  const trustedRoot = (await app.rest('/verify/trusted_root.json')).json;
  const { dsse_signing_keys: keys } = (await app.rest('/verify/trust_roots.json')).json as {
    dsse_signing_keys: { public_key_pem: string }[];
  };
  const verify = (bundle: JsonObject | undefined) =>
    verifyWithSigstore(
      bundle,
      trustedRoot,
      keys.map((key) => key.public_key_pem),
      {},
    );
  const { json } = await read((await submitWitnessed(app, owner)).id);
  verify(json.sigstore_bundle as JsonObject);
  const bundle = structuredClone(json.sigstore_bundle) as unknown as SigstoreBundle;
  delete bundle.verificationMaterial.timestampVerificationData;
  t.throws(() => verify(bundle as unknown as JsonObject), /expected 1 timestamps, got 0/);
});

t.test('concurrent reads, of two processes as well, share what is stored first', async (t) => {
  const { id } = await submitWitnessed(app, owner);
  authority.delayMs = 100;
  const { asked } = authority;
  const outcomes = await Promise.all(
    surfaces.flatMap(({ call }) => [1, 2, 3].map(() => call(getBundle, { id }, owner.key))),
  );
  authority.delayMs = 0;
  const stamps = outcomes.map(({ response }) =>
    stampsOf(response.sigstoreBundle as unknown as SigstoreBundle),
  );
  t.equal(new Set(stamps.flat()).size, 1);
  t.ok(stamps.every(({ length }) => length === 1));
  t.ok(authority.asked - asked <= 2, 'a request of each process at most');
  const [row] =
    await app.pool`SELECT count(*) AS n FROM signature_stamp t JOIN submission s USING (log_id, log_index) WHERE s.id = ${id}`;
  t.equal(row?.n, 1);
});

t.test('a slow authority delays no bundle by more than a second, and its stamp is in the next', async (t) => {
  const { id, artifactSha256 } = await submitWitnessed(app, owner);
  authority.delayMs = 3_000;
  const late = await read(id);
  t.match(late, { stamps: [], isPending: true, retryAfter: '1' });
  t.ok(late.ms < 1_000, `${late.ms} ms`);
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  const verify = (bundle: JsonObject) =>
    verifyBundle(bundle, { trustRoots, artifactSha256, now: new Date() });
  t.match(await verify(late.json), { verdict: 'verified', unproven: [] });
  const changed = await verify({ ...late.json, stamp_pending: 'yes' });
  t.match(changed, { verdict: 'not_verified', summary: /must be true or false/ });
  const { headers, json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  t.equal(headers['retry-after'], '1');
  t.equal((json.bundle as JsonObject).stamp_pending, true);
  const sigstore = await read(id, 'bundle.sigstore.json');
  t.match(sigstore, { stamps: [], retryAfter: '1' });
  t.notOk('stamp_pending' in sigstore.json);
  const proof = await app.rest(`/v1/attestations/${id}/bundle.tlog-proof`, { apiKey: owner.key });
  t.notOk('retry-after' in proof.headers, 'a form without stamps');
  const { asked } = authority;
  t.match(await untilStamped(id), { isPending: false, retryAfter: undefined });
  t.equal(authority.asked, asked, 'the request of before went on');
  authority.delayMs = 0;
});

t.test('a public bundle waits for a stamp, and a badge does not', async (t) => {
  const { id } = await submitWitnessed(app, owner);
  authority.delayMs = 1_500;
  const { asked } = authority;
  t.equal((await app.rest(`/verify/badge/${id}.svg`)).status, 200);
  t.equal(authority.asked, asked);
  const late = await app.rest(`/verify/bundle/${id}`);
  t.match(late, { status: 200, headers: { 'retry-after': '1' }, json: { stamp_pending: true } });
  const { headers, json } = await until('the stamp is there', async () => {
    const found = await app.rest(`/verify/bundle/${id}`);
    return found.json.stamp_pending === undefined && found;
  });
  authority.delayMs = 0;
  t.notOk('retry-after' in headers);
  t.equal(stampsOf(json.sigstore_bundle as unknown as SigstoreBundle).length, 1);
});

t.test('a dead authority is left alone for a while, and asked again', async (t) => {
  const { id } = await submitWitnessed(app, owner);
  const other = await submit(app, owner);
  await app.drain();
  authority.answer = async () => Promise.reject(new Error('dead'));
  const { asked } = authority;
  t.match(await read(id), { stamps: [], isPending: true, retryAfter: '1' });
  t.equal(authority.asked, asked + 1);
  for (const again of [id, other.id]) t.match(await read(again), { stamps: [], isPending: true });
  t.equal(authority.asked, asked + 1, 'it rests');
  authority.answer = authority.honest;
  t.ok(await untilStamped(id));
  t.ok(await untilStamped(other.id));
});

t.test('a bundle without its stamp is not cached, and one with it is', async (t) => {
  const { id } = await submitWitnessed(app, owner);
  authority.answer = async () => Promise.reject(new Error('dead'));
  const tagOf = async () =>
    (await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: owner.key })).headers.etag;
  const tags = [await tagOf(), await tagOf(), await tagOf()];
  t.equal(new Set(tags).size, 1);
  authority.answer = authority.honest;
  await untilStamped(id);
  const complete = await tagOf();
  t.not(complete, tags[0]);
  t.equal(await tagOf(), complete);
  const headers = { 'if-none-match': complete ?? '' };
  const { status } = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: owner.key, headers });
  t.equal(status, 304);
});

t.test('what a lying authority answers is neither stored nor in a bundle', async (t) => {
  const stranger = await startStampAuthority(t);
  const changed = (at: number) => async (query: Uint8Array) => {
    const other = Uint8Array.from(query);
    other[at] = (other[at] ?? 0) ^ 1;
    return authority.honest(other);
  };
  const lies: Record<string, typeof authority.answer> = {
    // Of the request: 5 bytes before the imprint's algorithm, 19 of it and 2 before the digest; the nonce is at the end.
    'another digest': changed(40),
    'another nonce': changed(66),
    'another chain': stranger.honest,
    'too many bytes': async (query) => Buffer.concat([await authority.honest(query), Buffer.alloc(70_000)]),
    'bytes after it': async (query) => Buffer.concat([await authority.honest(query), Buffer.alloc(1)]),
    'half of it': async (query) => (await authority.honest(query)).subarray(0, 300),
    nothing: async () => Buffer.alloc(0),
    'a rejection': async () => authority.honest(Buffer.from('3000', 'hex')),
  };
  for (const [what, answer] of Object.entries(lies)) {
    const { id } = await submitWitnessed(app, owner);
    await delay(0);
    authority.answer = answer;
    const { asked } = authority;
    await until(`${what} is answered`, async () => {
      t.match(await read(id), { stamps: [], isPending: true }, what);
      return authority.asked > asked;
    });
    const rows =
      await app.pool`SELECT FROM signature_stamp t JOIN submission s USING (log_id, log_index) WHERE s.id = ${id}`;
    t.equal(rows.length, 0, what);
    authority.answer = authority.honest;
    t.ok(await untilStamped(id), what);
  }
});
