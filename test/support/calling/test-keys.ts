/** Projects and API keys of a running service. */
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { revokeApiKey } from '../../../src/server/admin/store/api-keys.js';
import { createLogger } from '../../../src/server/core/logger.js';
import type { Principal } from '../../../src/server/core/principal.js';
import { makeKey, makeProject } from '../../../src/server/process/first-keys.js';
import { announceKeyChange } from '../../../src/server/queue/broadcast.js';
import { openQueue } from '../../../src/server/queue/jetstream.js';
import type { App } from '../app.js';

/** An API key as its holder has it. */
export type TestKey = {
  key: string;
  id: string;
  projectId: string;
  environment: Principal['environment'];
};

export type KeyOptions = {
  /** A new one when left out. */
  projectId?: string;
  environment?: Principal['environment'];
  /** All when left out. */
  scopes?: readonly string[];
  expiresAt?: Date;
  limits?: { perSecond?: number; perHour?: number; perDay?: number; readsPerSecond?: number };
};

/** Limits that no test reaches. */
const UNLIMITED = 1_000_000_000;

/** Makes a key, without limits worth the name unless they are given. */
export async function newKey(app: App, options: KeyOptions = {}): Promise<TestKey> {
  const { environment = Environment.LIVE, limits = {} } = options;
  const projectId = options.projectId ?? (await makeProject(app.pool, 'a test'));
  const { key, row } = await makeKey(app.pool, app.config.secrets.secretKeys, {
    environment,
    projectId,
    name: 'a test',
    scopes: options.scopes,
    expiresAt: options.expiresAt,
  });
  const {
    perSecond = UNLIMITED,
    perHour = UNLIMITED,
    perDay = UNLIMITED,
    readsPerSecond = UNLIMITED,
  } = limits;
  await app.pool`
    UPDATE api_key SET submissions_per_second = ${perSecond}, submissions_per_hour = ${perHour},
                       submissions_per_day = ${perDay}, reads_per_second = ${readsPerSecond}
    WHERE id = ${row.id}`;
  app.recorder.secrets.add(key);
  return { key, id: row.id, projectId, environment };
}

/** A key that was revoked before it was ever used. */
export async function revokedKey(app: App): Promise<TestKey> {
  const made = await newKey(app);
  await revokeApiKey(app.pool, made.id);
  return made;
}

/** Tells every API that a key was changed. */
export async function announceChange(app: App, apiKeyId: string): Promise<void> {
  const log = createLogger({ level: 'silent' });
  const { natsUrl: url = '' } = app.config;
  const queue = await openQueue({
    url,
    prefix: app.queuePrefix,
    name: 'a test',
    replicas: 1,
    stages: [],
    log,
  });
  announceKeyChange(queue, apiKeyId);
  await queue.close();
}

/** A key that has expired before it was ever used. */
export function expiredKey(app: App): Promise<TestKey> {
  return newKey(app, { expiresAt: new Date(Date.now() - 1_000) });
}
