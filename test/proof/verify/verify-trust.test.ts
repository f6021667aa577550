import type { JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { TrustRoots } from '../../../gen/attestation/v1/service_pb.js';
import { STAMP_PROVES, STAMPED_AT } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';
import { blocked, failures, good, other, rootsOf, service, trustRoots, verify } from '../verifying.js';

t.test('a bundle is worth nothing under the trust roots of another service', async (t) => {
  const result = await verify(good, { trustRoots: rootsOf(other.service) });
  t.equal(result.verdict, 'not_verified');
  t.strictSame(failures(result), [
    'signature.untrusted_key',
    'checkpoint.unknown_log',
    'checkpoint.unknown_log',
    'witness.not_signed',
  ]);
  t.strictSame(blocked(result), ['leaf.no_key', 'policy.not_checkable']);
  t.strictSame(
    result.witnesses.map(({ code }) => code),
    ['witness.not_signed', 'witness.rfc3161.signer_untrusted', 'witness.unknown_key'],
  );
});

t.test('trust roots that cannot be read, or contradict themselves, check nothing', async (t) => {
  const change = (member: string, value: unknown) => ({ ...trustRoots, [member]: value });
  const [dsse] = trustRoots.dsse_signing_keys as JsonObject[];
  const [log] = trustRoots.transparency_logs as JsonObject[];
  const [otherLog] = rootsOf(other.service).transparency_logs as JsonObject[];
  const [otherDsse] = rootsOf(other.service).dsse_signing_keys as JsonObject[];
  const cases: unknown[] = [
    undefined,
    null,
    'text',
    [],
    change('dsse_signing_keys', {}),
    change('dsse_signing_keys', [{ ...dsse, public_key_pem: 'x' }]),
    change('dsse_signing_keys', [{ ...dsse, public_key_pem: otherDsse!.public_key_pem }]),
    change('dsse_signing_keys', [{ ...dsse, valid_from: 'once' }]),
    change('transparency_logs', [{ ...log, verifier_key: 'x+y+z' }]),
    change('transparency_logs', [{ ...log, origin: 'elsewhere.example' }]),
    change('transparency_logs', [{ ...log, public_key_pem: otherLog!.public_key_pem }]),
    change('transparency_logs', [{ ...log, public_key_pem: dsse!.public_key_pem }]),
    change('transparency_logs', [
      { ...log, valid_from: '2025-01-02T00:00:00Z', valid_to: '2025-01-01T00:00:00Z' },
    ]),
    change('policies', [{ version: 1, required: ['tsa'], valid_from: 'once' }]),
    change('policies', [
      { version: 1, valid_from: '2025-01-02T00:00:00Z', valid_to: '2025-01-01T00:00:00Z' },
    ]),
    change('log_witnesses', [{ name: 'w1', verifier_key: otherLog!.verifier_key }]),
    change('timestamp_authorities', [{ name: 'tsa', cert_chain_pem: ['-----BEGIN CERTIFICATE-----'] }]),
  ];
  for (const roots of cases) {
    const result = await verify(good, { trustRoots: roots });
    t.equal(result.verdict, 'could_not_check');
    t.match(result.summary, /^Could not be checked: the trust roots cannot be read/);
    t.equal(result.steps[0]!.status, 'passed');
  }
});

t.test('both forms of a log’s key are one key, or the trust roots are rejected', async (t) => {
  const [log] = trustRoots.transparency_logs as JsonObject[];
  const [otherLog] = rootsOf(other.service).transparency_logs as JsonObject[];
  const withPem = (public_key_pem: unknown) => ({
    ...trustRoots,
    transparency_logs: [{ ...log, public_key_pem }],
  });
  t.equal((await verify(good, { trustRoots: withPem('') })).verdict, 'verified', 'the one that is needed');
  const refused = await verify(good, { trustRoots: withPem(otherLog!.public_key_pem) });
  t.equal(
    refused.summary,
    'Could not be checked: the trust roots cannot be read: /transparency_logs/0 verifier_key and public_key_pem ' +
      'are different keys.',
  );
});

t.test('the signing key must have been trusted when the earliest witness vouched', async (t) => {
  const keyWith = (validity: { validFrom?: Date; validTo?: Date }) =>
    rootsOf(service, {
      dsseSigningKeys: makeTrustRoots(service).dsseSigningKeys.map((key) => ({
        ...key,
        ...(validity.validFrom && { validFrom: timestampFromDate(validity.validFrom) }),
        ...(validity.validTo && { validTo: timestampFromDate(validity.validTo) }),
      })),
    });
  const at = (offsetMs: number) => new Date(STAMP_PROVES.getTime() + offsetMs);
  const years = 5 * 365 * 86_400_000;
  const later = { now: at(years) };
  t.equal(
    (await verify(good, { trustRoots: keyWith({ validTo: at(0) }), ...later })).verdict,
    'verified',
    'retired since',
  );
  t.equal(
    (await verify(good, { trustRoots: keyWith({ validFrom: at(30_000) }) })).verdict,
    'verified',
    'clocks differ',
  );
  for (const validity of [{ validTo: at(-1) }, { validFrom: at(120_000) }]) {
    const result = await verify(good, { trustRoots: keyWith(validity) });
    t.strictSame(failures(result), ['signature.key_not_valid']);
  }
  const { bundle } = await makeSample(service, ['log']);
  const policy = { required: ['log'] };
  const retired = { trustRoots: keyWith({ validTo: at(0) }), policy };
  t.equal((await verify(bundle, { ...retired, now: at(0) })).verdict, 'verified', 'no witness, still in use');
  t.strictSame(failures(await verify(bundle, { ...retired, now: at(1) })), ['signature.key_not_valid']);
});

t.test('an authority counts only for stamps of the time it was trusted', async (t) => {
  const authority = (change: Partial<TrustRoots['timestampAuthorities'][number]>) =>
    makeTrustRoots(service).timestampAuthorities.map((known) => ({ ...known, ...change }));
  const early = timestampFromDate(new Date(STAMPED_AT.getTime() - 1));
  const ended = rootsOf(service, { timestampAuthorities: authority({ validTo: early }) });
  const result = await verify(good, { trustRoots: ended });
  t.strictSame(failures(result), ['witness.not_trusted_then', 'policy.missing_witness']);
  const several = [
    ...authority({ validTo: early }),
    ...makeTrustRoots(other.service).timestampAuthorities,
    ...authority({}),
  ];
  t.equal(
    (await verify(good, { trustRoots: rootsOf(service, { timestampAuthorities: several }) })).verdict,
    'verified',
  );
});

t.test(
  'a required witness that cannot be checked leaves the verdict open, a missing one fails it',
  async (t) => {
    const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
    t.equal((await verify(bundle)).verdict, 'verified', 'not required');
    const calendar = (await verify(bundle)).witnesses.find(({ name }) => name === 'calendar');
    t.match(calendar, { status: 'not_checked', code: 'witness.no_block_header', kind: 'opentimestamps' });
    const open = await verify(bundle, { policy: { required: ['tsa', 'calendar'] } });
    t.equal(open.verdict, 'could_not_check');
    t.strictSame(blocked(open), ['policy.not_checkable']);
    const failed = await verify(bundle, { policy: { required: ['calendar', 'nobody'] } });
    t.equal(failed.verdict, 'not_verified');
    t.strictSame(failures(failed), ['policy.missing_witness']);
    t.equal((await verify(bundle, { policy: { required: [] } })).verdict, 'verified');
  },
);

t.test('the newest policy of the environment decides, and without one the verdict is open', async (t) => {
  const policies = [
    { environment: Environment.LIVE, version: 1, required: ['nobody'] },
    { environment: Environment.LIVE, version: 3, required: ['tsa', 'w1', 'log'] },
    { environment: Environment.LIVE, version: 2, required: ['nobody'] },
    { environment: Environment.TEST, version: 9, required: ['nobody'] },
  ];
  t.equal((await verify(good, { trustRoots: rootsOf(service, { policies }) })).verdict, 'verified');
  const result = await verify(good, { trustRoots: rootsOf(service, { policies: policies.slice(3) }) });
  t.equal(result.verdict, 'could_not_check');
  t.strictSame(blocked(result), ['policy.unknown']);
});

t.test(
  'a witness or signature that the trust roots do not know is shown as unchecked, never as passed',
  async (t) => {
    const roots = rootsOf(service, { logWitnesses: [], timestampAuthorities: [] });
    const result = await verify(good, { trustRoots: roots, policy: { required: ['log'] } });
    t.equal(result.verdict, 'verified');
    t.match(result.summary, '; no witness says when.');
    t.match(
      result.witnesses.map(({ name, status, code }) => ({ name, status, code })),
      [
        { name: 'log', status: 'passed' },
        { name: 'tsa', status: 'not_checked', code: 'witness.unknown' },
        { name: 'w1', status: 'not_checked', code: 'witness.unknown' },
      ],
    );
    const codes = result.steps.flatMap(({ checks }) => checks.map(({ code }) => code));
    t.ok(codes.includes('checkpoint.unknown_signature'));
    t.strictSame(result.unproven.slice(-2), ['/witnesses/1', '/witnesses/2']);
    const required = await verify(good, { trustRoots: roots });
    t.equal(required.verdict, 'could_not_check');
  },
);
