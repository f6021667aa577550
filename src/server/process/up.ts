import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Config, UpConfig } from '../../config/config.js';
import { sha256 } from '../../proof/bytes/primitives.js';
import { parseResponse } from '../../proof/rfc3161/token.js';
import { insertAuditEntry } from '../admin/store/audit.js';
import { findFirstProject } from '../admin/store/projects.js';
import type { StampWitness } from '../attestations/stamps/stamp-witness.js';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { writeFileAtomic } from '../core/files/write-file-atomic.js';
import { assertPortFree } from '../core/http/listen.js';
import type { Logger } from '../core/logger.js';
import type { Principal } from '../core/principal.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import type { Pool, Sql } from '../database/connect.js';
import { type DataDir, lockDataDir } from '../embedded/data-dir.js';
import { EmbeddedError } from '../embedded/embedded-error.js';
import { type NatsOptions, startNats } from '../embedded/nats.js';
import { type LocalServer, startPostgres } from '../embedded/postgres.js';
import { openSecrets } from '../embedded/secrets.js';
import type { ServerProcess } from '../embedded/server-process.js';
import { openTimestampAuthority } from '../timestamp-authority/timestamp-authority.js';
import { rfc3161Witness } from '../witnessing/clients/rfc3161.js';
import { timestampRequest } from '../witnessing/clients/timestamp-request.js';
import type { WitnessSetup } from '../witnessing/set-up-witnesses.js';
import type { Ready } from './addresses.js';
import { makeKey, makeProject } from './first-keys.js';

/** The name of the embedded time-stamping authority among the witnesses. */
const EMBEDDED_WITNESS = 'self-tsa';

const MIN_CONNECTIONS = 200;
/** Connections for writes and lists of an API process, beside its pool. */
const API_CONNECTIONS = 8;
const TOOL_CONNECTIONS = 20;

/** The content of `<data dir>/credentials.json`. */
export type Credentials = {
  base_url: string;
  verify_url: string;
  ops_url: string;
  /** Set where the admin API has a listener of its own. */
  admin_url?: string;
  project_id: string;
  live_key: string;
  test_key: string;
  admin_token: string;
};

/** The embedded servers of `attest up`. `failed` rejects if one of them exits unexpectedly. */
type Embedded = { config: Config; witnesses: WitnessSetup[]; failed: Promise<never> };

/** Locks the data directory, starts the servers that no setting names, and creates missing secrets. */
export async function startEmbedded(
  config: UpConfig,
  { log, onStep }: { log: Logger; onStep: (step: string) => void },
  hooks: ShutdownHooks,
): Promise<Embedded> {
  const dataDir = await lockDataDir({ path: config.dataDir });
  hooks.add(() => dataDir.release());
  await assertPortFree({ host: config.host, port: config.port });
  await assertPortFree({ host: config.opsHost, port: config.opsPort });
  if (config.adminPort !== undefined)
    await assertPortFree({ host: config.adminHost, port: config.adminPort });
  const secrets = await openSecrets(dataDir.path, config.secrets);
  const cache = config.cacheDir === undefined ? {} : { cacheDir: config.cacheDir };
  const options = { dataDir, log, ...cache };
  if (config.databaseUrl === undefined) onStep('starting PostgreSQL');
  const maxConnections = countConnections(config);
  const postgres =
    config.databaseUrl === undefined ? await startPostgres({ ...options, maxConnections }) : undefined;
  if (postgres) hooks.add(postgres.stop);
  if (config.natsUrl === undefined) onStep('starting nats-server');
  const nats = config.natsUrl === undefined ? await startNatsIfThere(options) : undefined;
  if (nats) hooks.add(nats.stop);
  const databaseUrl = config.databaseUrl ?? postgres?.url ?? '';
  const natsUrl = config.natsUrl ?? nats?.url;
  return {
    config: { ...config, dataDir: dataDir.path, databaseUrl, natsUrl, secrets },
    witnesses: [await embeddedWitness(dataDir)],
    failed: firstFailure({ PostgreSQL: postgres, 'nats-server': nats }),
  };
}

/** Connections of the worker, of the API processes and of one more while they are replaced, and some for tools. */
function countConnections({ poolSize, apiProcesses }: UpConfig): number {
  const used = poolSize + (poolSize + API_CONNECTIONS) * (apiProcesses + 1);
  return Math.max(MIN_CONNECTIONS, used + TOOL_CONNECTIONS);
}

/** The configuration that the process of `attest up` runs with, for the API processes that it starts. */
export async function readStarted(config: UpConfig): Promise<Config> {
  const connections = await findConnections(config.dataDir);
  if (connections === undefined) throw new Error(`no service runs over ${config.dataDir}`);
  const secrets = await openSecrets(config.dataDir, config.secrets);
  return { ...config, natsUrl: undefined, ...connections, secrets };
}

/** Undefined if nats-server is not installed: the reconciler then runs all jobs from the tables. */
async function startNatsIfThere(options: NatsOptions): Promise<LocalServer | undefined> {
  try {
    return await startNats(options);
  } catch (error) {
    if (!(error instanceof EmbeddedError) || error.code !== 'not_installed') throw error;
    options.log.warn({ reason: error.message }, 'without JetStream everything works, slower');
    return undefined;
  }
}

/** Rejects if one of the servers exits unexpectedly. */
function firstFailure(servers: Record<string, ServerProcess | undefined>): Promise<never> {
  const failed = new Promise<never>((_resolve, reject) => {
    for (const [name, server] of Object.entries(servers)) {
      void server?.exited.then(({ expected, lastLines }) => {
        if (!expected)
          reject(new Error(`${name} has stopped by itself: ${lastLines.at(-1) ?? 'it said nothing'}`));
      });
    }
  });
  failed.catch(() => {});
  return failed;
}

/** The environments of the embedded authority. */
const ENVIRONMENTS = [Environment.LIVE, Environment.TEST];
/** Of the embedded authority, which takes CPU alone: so many stamps are stored by one statement. */
const STAMP_LIMITS = { inFlight: 64, perSecond: 2_000 };

/** Opens the embedded time-stamping authority; makes its keys, once. */
function openEmbedded(dataDir: string) {
  const dir = join(dataDir, 'timestamp-authority');
  return openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
}

/**
 * The embedded authority as one that stamps signatures, in each process. What this process has made it does not verify, which
 * takes 0.8 ms; making it takes 0.1.
 */
export async function embeddedStamps({ dataDir }: Pick<Config, 'dataDir'>): Promise<StampWitness> {
  const { respond, policyOid } = await openEmbedded(dataDir);
  const ask = async (signature: Uint8Array) => {
    const wanted = { digest: sha256(signature), nonce: randomBytes(16), certReq: true, policyOid };
    const response = await respond(timestampRequest(wanted));
    return { response, genTime: parseResponse(response).tstInfo.genTime };
  };
  return { name: EMBEDDED_WITNESS, environments: ENVIRONMENTS, ask, limits: STAMP_LIMITS };
}

/** The time-stamping authority of this process; its name says that the clock is the operator's own. */
async function embeddedWitness(dataDir: DataDir): Promise<WitnessSetup> {
  const authority = await openEmbedded(dataDir.path);
  const { certChain, certChainPem, policyOid } = authority;
  const trust = { name: EMBEDDED_WITNESS, chains: [certChain], policyOid };
  return {
    witness: rfc3161Witness({ send: authority.respond, randomBytes }, trust),
    kind: WitnessKind.RFC3161,
    environments: ENVIRONMENTS,
    required: true,
    everyMs: 0,
    authority: { url: '', operator: 'self', certChainsPem: [certChainPem] },
  };
}

/**
 * Creates the first project with one live and one test key, once, and rewrites `credentials.json` with the addresses of
 * this start. Only that file holds the keys: if it is missing, new keys are created.
 */
export async function writeCredentials(pool: Pool, config: Config, ready: Ready): Promise<Credentials> {
  const path = join(config.dataDir, 'credentials.json');
  const keys = (await readKeys(path)) ?? (await makeFirstKeys(pool, config));
  const credentials: Credentials = {
    base_url: ready.baseUrl ?? '',
    verify_url: ready.verifyUrl ?? '',
    ops_url: ready.opsUrl,
    ...(ready.adminUrl === undefined ? {} : { admin_url: ready.adminUrl }),
    ...keys,
    admin_token: config.secrets.adminToken ?? '',
  };
  await writeFileAtomic(path, `${JSON.stringify(credentials, null, 2)}\n`);
  return credentials;
}

type FirstKeys = Pick<Credentials, 'project_id' | 'live_key' | 'test_key'>;

async function readKeys(path: string): Promise<FirstKeys | undefined> {
  try {
    const text = await readOptionalFile(path);
    if (text === undefined) return undefined;
    const { project_id, live_key, test_key } = JSON.parse(text);
    return { project_id, live_key, test_key };
  } catch (error) {
    throw new Error(
      `${path} cannot be read: ${(error as Error).message}; move it away to have new keys made`,
    );
  }
}

async function makeFirstKeys(pool: Pool, config: Config): Promise<FirstKeys> {
  return pool.begin(async (tx) => {
    const known = await findFirstProject(tx);
    const projectId = known?.id ?? (await makeProject(tx, 'first project'));
    if (known === undefined) await noteMade(tx, AuditAction.PROJECT_CREATED, projectId, projectId);
    const make = async (environment: Principal['environment']) => {
      const wanted = { environment, projectId, name: 'first key', scopes: undefined, expiresAt: undefined };
      const { key, row } = await makeKey(tx, config.secrets.secretKeys, wanted);
      await noteMade(tx, AuditAction.API_KEY_CREATED, projectId, row.id);
      return key;
    };
    const live_key = await make(Environment.LIVE);
    return { project_id: projectId, live_key, test_key: await make(Environment.TEST) };
  });
}

async function noteMade(tx: Sql, action: AuditAction, projectId: string, resourceId: string): Promise<void> {
  await insertAuditEntry(tx, {
    id: `aud_${ulid()}`,
    projectId,
    actorKind: AuditActorKind.SYSTEM,
    actorId: 'up',
    action,
    resourceId,
    requestId: null,
    detail: {},
  });
}

/** The file, mode 0600, where other commands find the database and queue of `attest up`. */
const CONNECTIONS_FILE = 'connections.json';

/** The URLs of the embedded servers. */
type Connections = { databaseUrl: string; natsUrl?: string };

/** Writes the URLs of this start for {@link findConnections}. */
export async function writeConnections({ databaseUrl, natsUrl, dataDir }: Config): Promise<void> {
  await writeFileAtomic(join(dataDir, CONNECTIONS_FILE), JSON.stringify({ databaseUrl, natsUrl }));
}

/** The URLs of the last `attest up` over a data directory; undefined if there was none. */
export async function findConnections(dataDir: string): Promise<Connections | undefined> {
  const text = await readFile(join(dataDir, CONNECTIONS_FILE), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Connections);
}
