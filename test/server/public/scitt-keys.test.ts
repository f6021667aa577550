/** The keys of receipts as SCITT clients read them. */
import { createHash, createPublicKey } from 'node:crypto';
import { decode } from 'cborg';
import t from 'tap';
import { parseReceipt } from '../../../src/proof/cose/receipt.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { submit } from '../rpc/submitting.js';

const PATH = '/.well-known/scitt-keys';
const app = await startApp(t);
const owner = await newKey(app);

/** A COSE_Key, by its labels. */
type CoseKey = Map<number, Uint8Array>;

const read = async (path: string) => {
  const { status, headers, body } = await app.rest(path);
  t.match(
    [status, headers],
    [200, { 'content-type': 'application/cbor', 'access-control-allow-origin': '*' }],
  );
  return decode(body, { useMaps: true });
};

/** The SHA-256 of a key's SPKI. */
function fingerprint(key: CoseKey): Buffer {
  t.same([key.get(1), key.get(3), key.get(-1)], [2, -7, 1], 'EC2, ES256, P-256');
  const [x, y] = [-2, -3].map((label) => Buffer.from(key.get(label) ?? []).toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' };
  const spki = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest();
}

t.test('the keys of receipts are a COSE Key Set, and each is found by the kid of its receipts', async (t) => {
  const keys: CoseKey[] = await read(PATH);
  t.equal(keys.length, 2, 'of the live log and the test log');
  for (const key of keys) t.same(Buffer.from(key.get(2) ?? []), fingerprint(key));
  const { id } = await submit(app, owner);
  await submit(app, owner);
  await app.drain();
  const { body } = await app.rest(`/v1/attestations/${id}/bundle.cose`, { apiKey: owner.key });
  const { keyId } = parseReceipt(body);
  const one: CoseKey = await read(`${PATH}/${Buffer.from(keyId).toString('base64url')}`);
  t.same(fingerprint(one), Buffer.from(keyId));
  t.ok(keys.some((key) => fingerprint(key).equals(keyId)));
});

t.test('a key that there is not is a concise problem, other methods are rejected', async (t) => {
  const [key]: CoseKey[] = await read(PATH);
  const kid = Buffer.from(key?.get(2) ?? []);
  for (const name of [
    'x',
    kid.toString('base64url').slice(1),
    `${kid.toString('base64url')}=`,
    kid.toString('hex'),
  ]) {
    const { status, headers, body } = await app.rest(`${PATH}/${name}`);
    t.match([status, headers], [404, { 'content-type': 'application/concise-problem-details+cbor' }], name);
    t.equal(decode(body, { useMaps: true }).get(-1), 'No such key');
  }
  for (const path of [PATH, `${PATH}/x`])
    t.equal((await app.rest(path, { method: 'POST', body: {} })).status, 405);
});
