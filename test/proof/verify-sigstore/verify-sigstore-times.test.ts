/** What proves the time of a Sigstore bundle: promises of logs, and time stamps. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { timestampRequest } from '../../../src/server/witness/timestamp-request.js';
import { makeOpensslTsa, type OpensslTsa } from '../../support/witnesses/openssl-tsa.js';
import {
  type BundleJson,
  digestOf,
  hashedRekordSpec,
  INTEGRATED_TIME,
  makeLog,
  makeSigner,
  messageBundle,
} from '../../support/witnesses/sigstore-log.js';
import { artifact, failures, type Given, OWN_ROOT, verify, withEntry } from './verifying-sigstore.js';

t.test("a log's promise of a time must be signed, and the log trusted at that time", async (t) => {
  const signer = makeSigner('P-384');
  const log = makeLog();
  const plain = messageBundle(artifact, signer);
  const signature = Buffer.from((plain.messageSignature as { signature: string }).signature, 'base64');
  const bundle = withEntry(plain, log, hashedRekordSpec(artifact, signature, signer));
  t.equal((await verify({ bundle, pem: signer.pem, root: log.trustedRoot })).verdict, 'verified');
  const later = structuredClone(bundle);
  later.verificationMaterial.tlogEntries[0]!.integratedTime = String(INTEGRATED_TIME + 1);
  t.strictSame(failures(await verify({ bundle: later, pem: signer.pem, root: log.trustedRoot })), [
    'checkpoint.promise_invalid',
  ]);
  for (const [end, verdict] of [
    [INTEGRATED_TIME, 'verified'],
    [INTEGRATED_TIME - 1, 'not_verified'],
  ] as const) {
    const root = structuredClone(log.trustedRoot);
    root.tlogs[0]!.publicKey.validFor.end = new Date(end * 1000).toISOString();
    t.equal((await verify({ bundle, pem: signer.pem, root })).verdict, verdict, `${end}`);
  }
});

t.test(
  'time stamps by openssl hold when over the signature, by a trusted authority, within its time',
  async (t) => {
    const tsa = await makeOpensslTsa({ dir: t.testdir(), curve: 'P-384', signerDigest: 'sha384' });
    const signer = makeSigner('P-256');
    const bundle = await stamped(messageBundle(artifact, signer), tsa);
    const found = await verify({ bundle, pem: signer.pem, root: rootWith(tsa) });
    t.equal(found.verdict, 'verified');
    t.match(found.summary, /it existed no later than \d{4}-/);
    t.ok(found.existedBy);
    const refusals: [code: string, given: Partial<Given>][] = [
      ['timestamps.not_trusted_then', { root: rootWith(tsa, '2099-01-01T00:00:00Z') }],
      [
        'timestamps.imprint_mismatch',
        { bundle: await stamped(messageBundle(artifact, signer), tsa, bundle) },
      ],
    ];
    for (const [code, given] of refusals) {
      const refused = await verify({ bundle, pem: signer.pem, root: rootWith(tsa), ...given });
      t.strictSame(failures(refused), [code]);
      t.equal(refused.existedBy, undefined, code);
    }
  },
);

/** The bundle with a stamp over its signature, or with that of another one. */
async function stamped(json: BundleJson, tsa: OpensslTsa, other?: BundleJson): Promise<BundleJson> {
  const { signature } = json.messageSignature as { signature: string };
  const digest = new Uint8Array(digestOf('sha256', Buffer.from(signature, 'base64')));
  const request = timestampRequest({ digest, nonce: new Uint8Array(randomBytes(8)), certReq: true });
  const reply = Buffer.from(await tsa.reply(request)).toString('base64');
  const stamps = other?.verificationMaterial.timestampVerificationData ?? {
    rfc3161Timestamps: [{ signedTimestamp: reply }],
  };
  return {
    ...json,
    verificationMaterial: { ...json.verificationMaterial, timestampVerificationData: stamps },
  };
}

function rootWith(tsa: OpensslTsa | undefined, start = '2020-01-01T00:00:00Z'): object {
  const certificates = tsa?.chain.map((der) => ({ rawBytes: Buffer.from(der).toString('base64') }));
  const authority = {
    subject: { commonName: 'foreign' },
    uri: '',
    certChain: { certificates },
    validFor: { start },
  };
  return { mediaType: OWN_ROOT.mediaType, timestampAuthorities: tsa ? [authority] : [] };
}
