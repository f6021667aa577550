/** Shows that the judge notices: breaks copies of what it judged in every way, and has it judge again. */
import { randomUUID } from 'node:crypto';
import type postgres from 'postgres';
import type { Result } from '../campaign.js';
import { table } from '../report.js';
import { withDatabase } from '../scene/database.js';
import { check, type Evidence } from './check.js';
import { type Bundle, checkByHand, checkByVerifier, type Subject } from './check-bundle.js';
import { readTables, type SeenTables } from './observe.js';
import { SABOTAGES } from './sabotage.js';
import { TABLE_SABOTAGES } from './sabotage-tables.js';

/** `found` has the checks that noticed; without one, the judge is blind to it. */
export type Proven = { where: 'record' | 'tables' | 'bundle'; sabotage: string; found: string[] };

export type ProofInput = Pick<Result, 'evidence' | 'scene' | 'bundles' | 'roots'>;

/** Ends the processes of the service first, as a database in use cannot be copied. */
export async function proveChecker({ evidence, scene, bundles, roots }: ProofInput): Promise<Proven[]> {
  await Promise.all(scene.processes.map((each) => each.stop()));
  const before = new Set(describe(evidence));
  const news = (broken: Evidence) => [
    ...new Set(
      check(broken)
        .problems.filter((each) => !before.has(JSON.stringify(each)))
        .map((each) => each.check),
    ),
  ];
  const proven: Proven[] = [];
  for (const { name, break: breakIt } of SABOTAGES)
    proven.push({ where: 'record', sabotage: name, found: news(breakIt(evidence, scene.logKeys)) });
  for (const { name, statement } of TABLE_SABOTAGES) {
    const tables = await breakTables(scene.postgres.url(), statement, evidence.observed.tables.projects);
    const found = news({ ...evidence, observed: { ...evidence.observed, tables } });
    proven.push({ where: 'tables', sabotage: name, found });
  }
  const sample = bundles.samples.find(({ bundle }) => bundle.checkpoints[0]?.inclusion_proof.length);
  if (sample === undefined) return proven;
  for (const [name, change] of Object.entries(BUNDLE_SABOTAGES)) {
    const bundle = structuredClone(sample.bundle);
    const subject = { ...sample.subject };
    change(bundle, subject);
    const found = [
      ...(checkByHand(bundle, subject, roots).length > 0 ? ['by hand'] : []),
      ...((await checkByVerifier(bundle, subject, roots)).length > 0 ? ['by the verifier'] : []),
    ];
    proven.push({ where: 'bundle', sabotage: name, found });
  }
  return proven;
}

function describe(evidence: Evidence): string[] {
  return check(evidence).problems.map((each) => JSON.stringify(each));
}

/** The table of what noticed what. */
export function provenLines(proven: readonly Proven[]): string {
  const missed = proven.filter(({ found }) => found.length === 0).length;
  const rows = proven.map(({ where, sabotage, found }) => [
    `${where}: ${sabotage}`,
    found.length === 0 ? 'NOT NOTICED' : found.join(', '),
  ]);
  const verdict = missed === 0 ? 'each was noticed' : `${missed} were not noticed`;
  return `\n${table([['broken on purpose', 'noticed by'], ...rows])}\n${verdict}`;
}

/** Breaks a copy of the database, with triggers and constraints between tables off. @returns what the copy then has */
async function breakTables(
  url: string,
  statement: string,
  projects: Record<string, string>,
): Promise<SeenTables> {
  const name = `broken_${randomUUID().replaceAll('-', '')}`;
  const original = new URL(url);
  const copy = new URL(url);
  copy.pathname = `/${name}`;
  const server = new URL(url);
  server.pathname = '/template1';
  const command = (sql: postgres.Sql, text: string) => sql.unsafe(text);
  await withDatabase(server.href, (sql) =>
    command(sql, `CREATE DATABASE ${name} TEMPLATE "${original.pathname.slice(1)}"`),
  );
  try {
    return await withDatabase(copy.href, async (sql) => {
      await unguard(sql);
      const { count } = await sql.unsafe(statement);
      if (count === 0) throw new Error(`this breaks nothing: ${statement}`);
      return readTables(sql, projects);
    });
  } finally {
    await withDatabase(server.href, (sql) => command(sql, `DROP DATABASE ${name} WITH (FORCE)`));
  }
}

/** Lets anything be done to the tables. */
async function unguard(sql: postgres.Sql): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    SELECT c.oid::regclass::text AS name FROM pg_class c
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`;
  for (const { name } of tables) await sql.unsafe(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
  const references = await sql<{ name: string; constraint: string }[]>`
    SELECT conrelid::regclass::text AS name, conname AS constraint FROM pg_constraint
    WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0`;
  for (const { name, constraint } of references)
    await sql.unsafe(`ALTER TABLE ${name} DROP CONSTRAINT "${constraint}"`);
}

/** Flips one bit of base64, in the middle unless told where from the end. */
function flip(base64: string, fromEnd?: number): string {
  const bytes = Buffer.from(base64, 'base64');
  const at = fromEnd === undefined ? Math.floor(bytes.length / 2) : bytes.length - fromEnd;
  bytes[at]! ^= 1;
  return bytes.toString('base64');
}

const BUNDLE_SABOTAGES: Record<string, (bundle: Bundle, subject: Subject) => void> = {
  'the signature is another': ({ sigstore_bundle: { dsseEnvelope } }) => {
    dsseEnvelope.signatures[0]!.sig = flip(dsseEnvelope.signatures[0]!.sig);
  },
  'the statement is another': ({ sigstore_bundle: { dsseEnvelope } }) => {
    const text = Buffer.from(dsseEnvelope.payload, 'base64').toString();
    const changed = text.replace(/"submission_id":"sub_./, '"submission_id":"sub_Z');
    dsseEnvelope.payload = Buffer.from(changed).toString('base64');
  },
  'it is of another artifact': (_, subject) => {
    subject.artifact = 'ab'.repeat(32);
  },
  'the entry of the log is another': ({ sigstore_bundle: { verificationMaterial } }) => {
    const entry = verificationMaterial.tlogEntries[0]!;
    entry.canonicalizedBody = flip(entry.canonicalizedBody);
  },
  'the path leads elsewhere': ({ checkpoints }) => {
    checkpoints[0]!.inclusion_proof[0] = flip(checkpoints[0]!.inclusion_proof[0]!);
  },
  'the path is too short': ({ checkpoints }) => {
    checkpoints[0]!.inclusion_proof.pop();
  },
  'the checkpoint is another': ({ checkpoints }) => {
    checkpoints[0]!.note = checkpoints[0]!.note.replace(/\n(\d+)\n/, (_, size) => `\n${size}1\n`);
  },
  'a time stamp is another': ({ witnesses }) => {
    const stamp = witnesses.find(({ kind }) => kind === 'rfc3161')!;
    // The signature stands at the end of the token; the certificates before it are signed by nobody.
    stamp.evidence = flip(stamp.evidence, 10);
  },
};
