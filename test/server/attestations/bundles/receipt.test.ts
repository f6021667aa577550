/** COSE receipts as callers get them, and as the commands verify them. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { fromHex } from '../../../../src/proof/bytes/encoding.js';
import { parseReceipt } from '../../../../src/proof/cose/receipt.js';
import { verifyReceipt } from '../../../../src/proof/verify/verify-receipt.js';
import type { SerializedBundle } from '../../../../src/server/attestations/bundles/bundles.js';
import { createReceipt } from '../../../../src/server/attestations/bundles/receipts.js';
import { KeyNotHeldError, SigningError } from '../../../../src/server/keys/signing-error.js';
import { listLogs } from '../../../../src/server/log/store/logs.js';
import { startApp } from '../../../support/app.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { type Made, submit } from '../../rpc/submitting.js';

const app = await startApp(t);
const owner = await newKey(app);
const dir = t.testdir();
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };

async function submitWitnessed(): Promise<Made> {
  const made = await submit(app, owner);
  await app.drain();
  return made;
}

const readReceipt = ({ id }: Made) => app.rest(`/v1/attestations/${id}/bundle.cose`, { apiKey: owner.key });

async function verify({ id }: Made, receipt: Uint8Array) {
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  const leafHash = fromHex(String(json.leaf_sha256));
  return verifyReceipt(receipt, { leafHash, submissionId: id, trustRoots, now: new Date() });
}

t.test('a log of one leaf has no receipt; then it is over a later checkpoint', async (t) => {
  const first = await submitWitnessed();
  const early = await readReceipt(first);
  t.match(early, {
    status: 404,
    json: { error: { code: 'bundle.not_ready', message: /a second submission/ } },
  });
  const second = await submitWitnessed();
  const third = await submitWitnessed();
  for (const [made, logIndex, treeSize] of [
    [first, 0, 3],
    [second, 1, 2],
    [third, 2, 3],
  ] as const) {
    const { status, headers, body } = await readReceipt(made);
    t.equal(status, 200);
    t.match(headers, {
      'content-type': 'application/cose; cose-type="cose-sign1"',
      'content-disposition': `attachment; filename="${made.id}.bundle.cose"`,
    });
    t.equal(parseReceipt(body).issuer, 'live.log.example.com');
    t.match(await verify(made, body), { check: { status: 'passed' }, logIndex, treeSize });
    t.equal((await verify(first === made ? second : first, body)).check.status, 'failed');
  }
});

t.test('an ended log whose key was removed makes no receipts any more', async (t) => {
  const [log] = await listLogs(app.pool);
  const note = Buffer.from((await app.rest('/verify/log/live/checkpoint')).body).toString();
  const bundle = { logIndex: 0, message: () => ({ checkpoints: [{ note, inclusionProof: [] }] }) };
  const receiptOf = (endedAt: Date | null, error: Error) =>
    createReceipt(
      {
        pool: app.pool,
        tiles: undefined as never,
        logCache: { allLogs: () => [{ ...log!, endedAt }] },
        receiptSignerOf: () => Promise.reject(error),
      },
      'sub_1',
      bundle as unknown as SerializedBundle,
    );
  const notHeld = new KeyNotHeldError('LOG_KEY_FILE does not hold the key');
  await t.rejects(receiptOf(new Date(), notHeld), {
    code: ErrorCode.BUNDLE_NOT_READY,
    message: /has ended and its key has been removed.*; take bundle\.json/,
  });
  const unavailable = { code: ErrorCode.SERVICE_UNAVAILABLE };
  await t.rejects(receiptOf(null, notHeld), unavailable);
  await t.rejects(receiptOf(new Date(), new SigningError('the signing process is away')), unavailable);
});

t.test('the commands fetch and verify one', async (t) => {
  const made = await submitWitnessed();
  const other = await submitWitnessed();
  const [bundle, cose, strange] = ['b.json', 'b.cose', 'other.cose'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  for (const [id, format, file] of [
    [made.id, 'json', bundle],
    [made.id, 'cose', cose],
    [other.id, 'cose', strange],
  ] as const) {
    const fetched = await runHere(['bundle', id, '--format', format, '-o', file], { env });
    t.equal(fetched.code, 0, fetched.stderr);
  }
  const roots = join(dir, 'trust_roots.json');
  await writeFile(roots, (await app.rest('/verify/trust_roots.json')).body);
  const verifyWith = (receipt: string) =>
    runHere([
      'verify',
      `sha256:${made.artifactSha256}`,
      '--bundle',
      bundle,
      '--trust-roots',
      roots,
      '--receipt',
      receipt,
    ]);
  const good = await verifyWith(cose);
  t.match(good, {
    code: 0,
    stdout: /the log live\.log\.example\.com signed a tree of \d leaves that holds the leaf/,
  });
  t.match(await verifyWith(strange), { code: 1, stdout: /FAILED +inclusion +the receipt is about sub_/ });
  t.match(await verifyWith(bundle), { code: 1, stdout: /it is not a receipt: / });
  t.match(await verifyWith(join(dir, 'none')), { code: 2, stderr: /cannot be read/ });
});
