import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t, { type Test } from 'tap';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import {
  COSIGNATURE_V1_KEY,
  ED25519_NOTE_KEY,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  noteKey,
} from '../../../src/proof/log/note.js';
import { mlDsaKeyPem, parseMlDsaKey } from '../../../src/server/keys/ml-dsa-key.js';
import { restJson } from '../../proof/rest-json.js';
import { runHere } from '../../support/calling/run-cli.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { makeHistories, noteOver, publishLog } from './published-log.js';

const { service, stranger, entries: ENTRIES, fork: FORK } = await makeHistories(t);
const witness = service.cosigner;

async function publish(t: Test) {
  const log = await publishLog(t, service);
  const audit = (...more: string[]) => runHere(['audit', log.url, ...more]);
  return { ...log, audit };
}

t.test('a quorum counts the witnesses of the trust roots, and no forged cosignature', async (t) => {
  const { show, showNote, audit } = await publish(t);
  show(ENTRIES);
  t.match(await audit('--quorum', '1'), { code: 4, stdout: /cosigned by no witness/ });
  show(ENTRIES, { cosigners: [{ ...stranger.cosigner, name: 'else' }] });
  t.match(await audit('--quorum', '1'), { code: 4, stdout: /cosigned by no witness/ });
  show(ENTRIES, { cosigners: [witness] });
  t.match(await audit('--quorum', '1'), { code: 0 });
  t.match(await audit('--quorum', '2'), { code: 4, stdout: /cosigned by only w1/ });
  const forged = { ...witness, sign: () => new Uint8Array(64) };
  showNote(noteOver(service, ENTRIES, { cosigners: [forged] }));
  t.match(await audit(), { code: 1, stdout: /a signature of w1 that is not valid/ });
});

t.test('the second signature of a log is verified, and its absence reported', async (t) => {
  const mlDsa = parseMlDsaKey(mlDsaKeyPem(randomBytes(32)));
  const log = await publishLog(t, { ...service, log: { ...service.log, mlDsa } });
  const second = { ...mlDsa, name: service.origin, type: ML_DSA_44_NOTE_KEY };
  const show = (sign = second.sign) =>
    log.show(ENTRIES, { cosigners: [{ ...second, sign }], at: new Date(0) });
  const audit = (...more: string[]) => runHere(['audit', log.url, ...more]);
  show();
  t.match(await audit('--json'), { code: 0, stdout: /"ml_dsa_signature":"valid"/ });
  t.notMatch((await audit()).stdout, /ML-DSA/);
  show((data) => second.sign(data).with(7, 1).with(8, 2).with(9, 3));
  t.match(await audit(), {
    code: 1,
    stdout: /its checkpoint has a signature of live\.log\.example by ML-DSA-44 that is not valid/,
  });
  log.show(ENTRIES);
  t.match(await audit(), { code: 0, stdout: /without the log's ML-DSA-44 signature/ });
});

t.test('a policy in the form of C2SP brings its own witnesses, groups and quorum', async (t) => {
  const { show, audit } = await publish(t);
  const other = { ...stranger.cosigner, name: 'other.example/w2' };
  const key = ({ name, publicKey }: typeof other, type = COSIGNATURE_V1_KEY) =>
    encodeVerifierKey(noteKey(name, publicKey, type));
  const log = `log ${key({ ...service.log, name: service.origin }, ED25519_NOTE_KEY)}\n`;
  const witnesses = `witness a ${key(witness)}\nwitness b ${key(other)}\n`;
  const folder = t.testdir({
    any: `${log}${witnesses}group g any a b\nquorum g\n`,
    all: `${log}${witnesses}group g all a b\nquorum g\n`,
    none: `${log}quorum none\n`,
    foreign: `${witnesses}quorum a\n`,
    broken: 'quorum x\n',
  });
  const under = (name: string) => audit('--policy', join(folder, name));
  const codes = async () => Promise.all(['any', 'all', 'none'].map(async (name) => (await under(name)).code));
  show(ENTRIES);
  t.strictSame(await codes(), [4, 4, 0]);
  show(ENTRIES, { cosigners: [other] });
  t.strictSame(await codes(), [0, 4, 0]);
  show(ENTRIES, { cosigners: [other, witness] });
  t.strictSame(await codes(), [0, 0, 0]);
  t.match(await under('foreign'), { code: 2, stderr: /the policy has no log live\.log\.example/ });
  t.match(await under('broken'), { code: 2, stderr: /is not a policy: line 1/ });
});

t.test('a log that shows nothing new is stale, until it grows or is cosigned', async (t) => {
  const { show, url, status } = await publish(t);
  const state = join(t.testdir(), 'state.json');
  const hour = 3_600_000;
  const begin = Date.parse('2026-01-01T00:00:00Z');
  const auditAt = (hours: number) =>
    runHere(['audit', url, '--state', state, '--max-age', '1h'], {
      now: () => new Date(begin + hours * hour),
    });
  show(ENTRIES.slice(0, 300));
  t.match(await auditAt(0), { code: 0 });
  t.match(await auditAt(1), { code: 0 }, 'not yet');
  t.match(await auditAt(2), { code: 4, stdout: /it has shown nothing new since 2026-01-01T00:00:00/ });
  status.set('log/checkpoint', 403);
  t.match(await auditAt(2), { code: 4, stdout: /it cannot be reached, and it has shown nothing new since/ });
  status.delete('log/checkpoint');
  show(ENTRIES.slice(0, 300), { cosigners: [witness], at: new Date(begin + 1.5 * hour) });
  t.match(await auditAt(2), { code: 0 }, 'a cosignature shows that somebody has seen it since');
  show(ENTRIES.slice(0, 300), { cosigners: [witness], at: new Date(begin + 1_000 * hour) });
  t.match(await auditAt(2), { code: 4 }, 'one from the future shows nothing');
  show(ENTRIES);
  t.match(await auditAt(3), { code: 0 });
});

t.test('a closed log is never stale', async (t) => {
  const { show, roots } = await publish(t);
  show(ENTRIES);
  for (const log of roots.transparencyLogs) log.validTo = timestampFromDate(new Date('2026-02-01T00:00:00Z'));
  const folder = t.testdir({ 'roots.json': JSON.stringify(restJson(TrustRootsSchema, roots)) });
  const state = ['--state', join(folder, 'state.json'), '--max-age', '1h'];
  const auditAt = (now: string) =>
    runHere(['audit', '--trust-roots', join(folder, 'roots.json'), ...state], { now: () => new Date(now) });
  t.equal((await auditAt('2026-01-01T00:00:00Z')).code, 0);
  t.equal((await auditAt('2026-01-02T00:00:00Z')).code, 4);
  t.equal((await auditAt('2026-02-02T00:00:00Z')).code, 0);
});

t.test('evidence that cannot be written does not hide the alarm', async (t) => {
  const { show, audit, url } = await publish(t);
  show(ENTRIES);
  show(FORK, { folder: 'mirror' });
  const folder = t.testdir({ file: '' });
  const ended = await audit('--mirror', `${url}/mirror`, '--evidence', join(folder, 'file'));
  t.match(ended, { code: 3, stderr: /the evidence cannot be written: / });
});

t.test('the URL is that of the log if trust roots are given', async (t) => {
  const { show, url, roots, files } = await publish(t);
  show(ENTRIES, { folder: 'elsewhere' });
  files.delete('trust_roots.json');
  const folder = t.testdir({ 'roots.json': JSON.stringify(restJson(TrustRootsSchema, roots)) });
  const pinned = ['--trust-roots', join(folder, 'roots.json')];
  t.match(await runHere(['audit', `${url}/elsewhere`, ...pinned]), { code: 0, stdout: '700 entries' });
  t.match(await runHere(['audit', ...pinned]), { code: 0, stdout: 'the log is empty' });
});

t.test('wrong flags end with 2 and name the mistake', async (t) => {
  const { url } = await publish(t);
  const nobody = `http://127.0.0.1:${await findFreePort()}`;
  const table: [flags: string[], message: RegExp][] = [
    [['--poll', '1s'], /--poll needs --follow/],
    [['--follow', '--poll', 'soon'], /--poll is "soon"; expected a duration/],
    [['--mirror', 'ftp://x'], /--mirror is wrong/],
    [['--quorum', '0'], /--quorum is "0"/],
    [['--max-age', '1'], /--max-age is "1"/],
    [['--origin', 'other'], /the trust roots have no such log/],
    [['--webhook', nobody], /--webhook needs a secret in ATTEST_AUDIT_WEBHOOK_SECRET/],
    [['--webhook-secret-file', 'x'], /--webhook-secret-file needs --webhook/],
    [['--follow', '--metrics', '9100'], /--metrics is not a host and a port/],
    [['--verify-url', url], /exclude each other/],
    [['--statements', 'gone'], /gone cannot be read/],
  ];
  for (const [flags, message] of table) {
    const ended = await runHere(['audit', url, ...flags], { env: {} });
    t.match(ended, { code: 2, stdout: '', stderr: message }, flags.join(' '));
  }
});
