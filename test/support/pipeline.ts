/** The pipeline in the test's own process, over a database of its own, with witnesses that do as the test says. */
import { createPublicKey, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ulid } from 'ulid';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import type { QuorumConfig } from '../../src/config/witnesses/witness-policy.js';
import {
  type NewSubmission,
  sequenceSubmissions,
} from '../../src/server/attestations/sequence/sequence-submissions.js';
import type { StampWitness } from '../../src/server/attestations/stamps/stamp-witness.js';
import { createLogger } from '../../src/server/core/logger.js';
import { connectPool, type Pool } from '../../src/server/database/connect.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import { jobSubject } from '../../src/server/jobs/job.js';
import type { KeyRing } from '../../src/server/keys/key-ring.js';
import { checkpointSigners } from '../../src/server/log/checkpoint-signers.js';
import { openLogKeys } from '../../src/server/log/log-keys.js';
import { setUpLogs } from '../../src/server/log/set-up-logs.js';
import { ensureDsseKey, listDsseKeys } from '../../src/server/log/store/dsse-keys.js';
import { findActiveLog, listLogs } from '../../src/server/log/store/logs.js';
import type { Pipeline } from '../../src/server/pipeline/pipeline.js';
import { findDueJobs } from '../../src/server/pipeline/reconcile.js';
import { runJob } from '../../src/server/pipeline/stages.js';
import { openExports } from '../../src/server/process/worker/export-shipping.js';
import { openWebhooks } from '../../src/server/process/worker/webhook-sending.js';
import { openTimestampAuthority } from '../../src/server/timestamp-authority/timestamp-authority.js';
import type { AttemptCounts } from '../../src/server/webhooks/delivery/attempt.js';
import { rfc3161Witness } from '../../src/server/witnessing/clients/rfc3161.js';
import { openRegister } from '../../src/server/witnessing/register/open-register.js';
import { setUpWitnesses, type WitnessSetup } from '../../src/server/witnessing/set-up-witnesses.js';
import { installClock } from './breaking/database-clock.js';
import { fileKey } from './certificates/file-key.js';
import type { Acknowledged } from './judging/consistent.js';
import { testDatabase } from './servers/shared-servers.js';
import { acknowledge, makeRow, type RowOptions } from './servers/submission-rows.js';

/** What a witness does when it is asked: `answer` makes it vouch. */
export type Manner = (answer: () => Promise<Uint8Array>, signal: AbortSignal) => Promise<Uint8Array>;

/** A witness of the test: the embedded authority, behind a manner that may change. */
export type TestWitness = { name: string; setup: WitnessSetup; manner: Manner; asked: number };

export type TestPipeline = {
  pipeline: Pipeline;
  pool: Pool;
  databaseUrl: string;
  /** The live log. */
  logId: number;
  register: string;
  secretKeys: KeyRing;
  /** Lines of the log, parsed. */
  lines: Record<string, unknown>[];
  /** Makes rows that are ready to be stored, checked, signed and hashed as a handler does it. */
  makeRows(count: number, more?: RowOptions): NewSubmission[];
  /** Stores so many and says what a client would have been told. */
  submit(count: number): Promise<Acknowledged[]>;
  /** Another worker over the same tables: same keys, same register, same witnesses. */
  another(change?: Partial<Pipeline>): Pipeline;
};

export const willing: Manner = (answer) => answer();
export const unwilling: Manner = () => Promise.reject(new Error('the witness is away'));

/** A witness named `name`, of the live environment. */
export async function makeWitness(
  test: Test,
  name: string,
  { required = true, everyMs = 0 } = {},
): Promise<TestWitness> {
  const dir = await temporaryDir(test);
  const authority = await openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
  const { certChain, certChainPem, policyOid } = authority;
  const made: TestWitness = {
    name,
    manner: willing,
    asked: 0,
    setup: {
      witness: rfc3161Witness(
        {
          send: (request, signal) => {
            made.asked++;
            return made.manner(() => authority.respond(request), signal);
          },
          randomBytes,
        },
        { name, chains: [certChain], policyOid },
      ),
      kind: WitnessKind.RFC3161,
      environments: [Environment.LIVE],
      required,
      everyMs,
      authority: { url: '', operator: 'a test', certChainsPem: [certChainPem] },
    },
  };
  return made;
}

/** Whose end is that of what is made for it: a test. */
type Owner = Pick<Test, 'teardown'>;

export type TestPipelineOptions = {
  databaseUrl: string;
  witnesses: readonly TestWitness[];
  quorums?: readonly QuorumConfig[];
  deadlineMs?: number;
  batchMaxLeaves?: number;
  observeAttempts?: (counts: AttemptCounts) => void;
  /** The witnesses that stamp signatures; none by default. */
  stampWitnesses?: readonly StampWitness[];
  /** The folder of secrets and register, of several pipelines of one installation. Default: a new one. */
  dir?: string;
};

/** A pipeline over a database of its own, whose clock the test moves on with `letPass`. */
export async function openPipeline(
  t: Test,
  witnesses: readonly TestWitness[],
  more?: Partial<TestPipelineOptions>,
): Promise<TestPipeline> {
  const databaseUrl = await testDatabase(t);
  await installClock(databaseUrl);
  return makePipeline(t, { databaseUrl, witnesses, ...more });
}

/** Sets the tables up as a worker and an API do at their start. */
export async function makePipeline(test: Owner, options: TestPipelineOptions): Promise<TestPipeline> {
  const dir = options.dir ?? (await temporaryDir(test));
  const secrets = await openSecrets(dir);
  const register = join(dir, 'register');
  const pool = connectPool({
    url: options.databaseUrl,
    name: 'test pipeline',
    max: 4,
    statementTimeoutMs: 10_000,
  });
  test.teardown(() => pool.end({ timeout: 1 }));
  const setups = options.witnesses.map(({ setup }) => setup);
  const logKeys = await openLogKeys(secrets, { add: (stop) => test.teardown(stop) });
  await setUpLogs(pool, 'log.example.com', logKeys);
  await setUpWitnesses(pool, setups, {
    quorums: options.quorums ?? [],
    deadlineMs: options.deadlineMs ?? 3_600_000,
  });
  const spki = createPublicKey(fileKey(secrets.dsse.live[0])).export({ type: 'spki', format: 'der' });
  await ensureDsseKey(pool, Environment.LIVE, spki);
  const dsseKeyId = (await listDsseKeys(pool))[0]?.id ?? 0;
  const logId = findActiveLog(await listLogs(pool), Environment.LIVE)?.id ?? 0;
  const lines: Record<string, unknown>[] = [];
  const { webhooks, close } = openWebhooks({
    config: { databaseUrl: options.databaseUrl, secrets, allowInsecureDestinations: true },
    baseUrl: () => 'https://api.example.com',
    log: createLogger({ level: 'silent' }),
    observeAttempts: options.observeAttempts ?? (() => {}),
    guard: (work) => work(),
    localPool: pool,
  });
  test.teardown(close);
  const { exports, close: closeExports } = await openExports({
    config: {
      databaseUrl: options.databaseUrl,
      secrets,
      allowInsecureDestinations: true,
      ambientCredentials: [],
      extraCaFile: undefined,
      programPath: process.env.PATH,
      exportSpoolBytes: 1024 * 1024 * 1024,
    },
    log: createLogger({ level: 'silent' }),
    stampWitnesses: options.stampWitnesses ?? [],
    observeShipments: () => {},
    guard: (work) => work(),
    localPool: pool,
  });
  test.teardown(closeExports);
  const pipeline: Pipeline = {
    pool,
    localPool: pool,
    assertCommits: () => {},
    log: createLogger({
      level: 'debug',
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    }),
    register: await openRegister(register),
    witnesses: setups,
    webhooks,
    exports,
    signerOf: checkpointSigners(logKeys),
    settings: {
      batchIntervalMs: 0,
      batchMaxLeaves: options.batchMaxLeaves ?? 65_536,
      witnessTimeoutMs: 5_000,
    },
    aborting: webhooks.aborting,
    newBatchId: () => `btc_${ulid()}`,
    random: Math.random,
    observeAlarm: () => {},
    observeSettled: () => {},
    send: () => {},
  };
  const makeRows: TestPipeline['makeRows'] = (count, { isPublic = false, ...more } = {}) =>
    Array.from({ length: count }, () => ({
      ...makeRow(fileKey(secrets.dsse.live[0]), dsseKeyId, spki, { ...more, isPublic }),
      ...more,
    }));
  return {
    pipeline,
    pool,
    databaseUrl: options.databaseUrl,
    logId,
    register,
    secretKeys: secrets.secretKeys,
    lines,
    makeRows,
    submit: async (count) => {
      const rows = makeRows(count);
      const results = await sequenceSubmissions(pool, logId, rows, false, 86_400_000);
      return rows.map((row, i) => acknowledge(row, results[i]?.logIndex ?? -1));
    },
    another: (change) => ({ ...pipeline, ...change }),
  };
}

/** Runs what is due until that changes nothing any more; a job that fails is run again by the next round. */
export async function drain(pipeline: Pipeline): Promise<void> {
  for (let before = ''; ; ) {
    for (const job of await findDueJobs(pipeline)) {
      await runJob(pipeline, job).catch((error: unknown) =>
        pipeline.log.error({ err: error, job: jobSubject(job) }, 'a job failed'),
      );
    }
    const after = await fingerprint(pipeline.pool);
    if (after === before) return;
    before = after;
  }
}

async function fingerprint(pool: Pool): Promise<string> {
  const [row] = await pool`
    SELECT (SELECT count(*) FROM batch) AS batches, (SELECT count(registered_at) FROM batch) AS published,
           (SELECT count(*) FROM batch_transition) AS transitions, (SELECT count(*) FROM evidence) AS evidence,
           (SELECT sum(attempt) FROM witness_state) AS attempts, (SELECT sum(lease) FROM webhook) AS leases,
           (SELECT sum(lease) FROM export) AS exports, (SELECT count(*) FROM export_change) AS changes,
           (SELECT count(*) FROM batch_transition WHERE notified) AS notified`;
  return JSON.stringify(row);
}

async function temporaryDir(test: Owner): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-pipeline-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
