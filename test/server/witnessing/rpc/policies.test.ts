/** Required witnesses are added, renamed and replaced; what was saved before goes on to verify. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { type Verification, verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { until } from '../../../support/until.js';
import { submit } from '../../rpc/submitting.js';

const HOUR = 3_600_000;
const TABLES = [
  ['policy', 'created_at'],
  ['log', 'created_at'],
  ['dsse_key', 'valid_from'],
  ['timestamp_authority', 'valid_from'],
  ['timestamp_authority', 'valid_to'],
] as const;

const app = await startApp(t, { witnesses: ['tsa'] });
const owner = await newKey(app);

/** A bundle that was saved, and the artifact it is about. */
type Saved = { bundle: JsonObject & { witnesses: JsonObject[] }; artifactSha256: string };

/** What the tables got in the last minutes happened so many hours ago. */
async function happened(hoursAgo: number): Promise<void> {
  for (const [table, column] of TABLES) {
    await app.pool`
      UPDATE ${app.pool(table)} SET ${app.pool(column)} = ${app.pool(column)} - ${hoursAgo} * interval '1 hour'
      WHERE ${app.pool(column)} > clock_timestamp() - interval '30 minutes'`;
  }
}

/** Submits, has it witnessed by clocks that are so many hours behind, and saves the bundle. */
async function save(hoursAgo: number): Promise<Saved> {
  for (const witness of app.witnesses) witness.clockOffsetMs = -hoursAgo * HOUR;
  const { id, artifactSha256 } = await submit(app, owner);
  await app.drain();
  const { json } = await app.rest(`/v1/attestations/${id}/bundle.json`, { apiKey: owner.key });
  return { bundle: json as Saved['bundle'], artifactSha256 };
}

/** Trust roots as they are published once they know so many policies of each environment, the newest since then. */
async function trustRoots(versions: number, sinceHoursAgo: number): Promise<JsonObject> {
  return until('trust roots are read again', async () => {
    const { json } = await app.rest('/verify/trust_roots.json');
    const own = policiesOf(json);
    const since = Date.parse(String(own.at(-1)?.valid_from));
    const isThere = own.length === versions && Math.abs(Date.now() - since - sinceHoursAgo * HOUR) < HOUR / 2;
    return isThere ? json : undefined;
  });
}

function policiesOf(roots: JsonObject): JsonObject[] {
  return (roots.policies as JsonObject[]).filter(({ environment }) => environment === 'live');
}

function verify({ bundle, artifactSha256 }: Saved, roots: JsonObject): Promise<Verification> {
  return verifyBundle(bundle, { trustRoots: roots, artifactSha256, now: new Date() });
}

function without({ bundle, artifactSha256 }: Saved, name: string): Saved {
  const witnesses = bundle.witnesses.filter((witness) => witness.name !== name);
  return { bundle: { ...bundle, witnesses }, artifactSha256 };
}

function failures({ steps }: Verification): string[] {
  return steps.flatMap(({ checks }) => checks.filter((c) => c.status === 'failed').map(({ code }) => code));
}

await happened(10);
const saved = { first: await save(9) };
await app.changeWitnesses(['tsa', 'second']);
await happened(8);

t.test('a bundle that was saved before a witness was added still verifies', async (t) => {
  const roots = await trustRoots(2, 8);
  t.match(policiesOf(roots), [
    { version: 1, required: ['log', 'tsa'] },
    { version: 2, required: ['log', 'tsa', 'second'] },
  ]);
  const before = await verify(saved.first, roots);
  t.equal(before.verdict, 'verified', before.summary);
  const underWay = await save(7.5);
  const late = await save(6);
  for (const whole of [underWay, late]) t.equal((await verify(whole, roots)).verdict, 'verified');
  const partial = await verify(without(underWay, 'second'), roots);
  t.equal(partial.verdict, 'verified', 'both policies were in force until the deadline');
  const weaker = await verify(without(late, 'second'), roots);
  t.strictSame(failures(weaker), ['policy.missing_witness'], 'the one without it had ended');
  const untimed = await verify(without(without(saved.first, 'tsa'), 'second'), roots);
  const missing = ['policy.missing_witness', 'policy.missing_witness'];
  t.strictSame(failures(untimed), missing, 'without a time the newest decides');
  Object.assign(saved, { underWay, late });
});

t.test('a bundle saved before a witness was renamed or replaced verifies too', async (t) => {
  await app.changeWitnesses(['renamed', 'second'], { renamed: 'tsa' });
  await happened(5);
  const renamed = await save(3);
  await app.changeWitnesses(['third', 'second']);
  await happened(2);
  const all: Record<string, Saved> = { ...saved, renamed, replaced: await save(0) };
  const roots = await trustRoots(4, 2);
  for (const [name, bundle] of Object.entries(all)) {
    const { verdict, summary } = await verify(bundle, roots);
    t.equal(verdict, 'verified', `${name}: ${summary}`);
  }
  const authorities = roots.timestamp_authorities as JsonObject[];
  t.match(authorities, [
    { name: 'tsa', valid_to: /Z$/ },
    { name: 'second', valid_to: undefined },
    { name: 'renamed', valid_to: /Z$/ },
    { name: 'third', valid_to: undefined },
  ]);
  t.same(authorities[2]!.cert_chain_pem, authorities[0]!.cert_chain_pem);
  for (const [name, bundle] of Object.entries({ renamed, replaced: all.replaced! })) {
    t.not(
      (await verify(without(bundle, name === 'renamed' ? 'renamed' : 'third'), roots)).verdict,
      'verified',
    );
  }
});

t.test('a policy ends its deadline after the next one begins', async (t) => {
  const policies = policiesOf(await trustRoots(4, 2));
  t.same(
    policies.map(({ valid_to }) => valid_to),
    policies.map((_, i) => {
      const next = policies[i + 1]?.valid_from;
      return next === undefined ? undefined : new Date(Date.parse(String(next)) + HOUR).toISOString();
    }),
  );
});

t.test(
  'a policy that was made after the database’s clock was set back makes no window upside down',
  async (t) => {
    await app.pool`UPDATE policy SET created_at = created_at - interval '1 day' WHERE version = 4`;
    const roots = await trustRoots(4, 26);
    const { verdict, summary } = await verify(saved.first, roots);
    t.equal(verdict, 'verified', summary);
    for (const { valid_from, valid_to } of policiesOf(roots).slice(0, 3)) {
      t.ok(Date.parse(String(valid_to)) >= Date.parse(String(valid_from)) + HOUR);
    }
  },
);
