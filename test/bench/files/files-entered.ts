import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { pickIds } from '../fill.js';
import type { Options } from '../options.js';
import { ATTEST_MODULES, benchScript, startNode } from '../process.js';
import { openPool, readyUrl, type Services } from '../services.js';
import { layRanges, subscribe } from '../stages/webhooks.js';
import { type CoverageSession, openCoverage, runCovered } from './coverage.js';

/** The files of src/ that one way through the service enters. */
export type FilesEntered = { path: string; files: string[] };

/** The program as modules: in the bundle that users run files cannot be distinguished. */
const REPEATS = 4;
/** The job that a create wakes is sent within this: it is no part of the request that follows. */
const WAKE_MS = 500;
const EVENTS = 10;
const METADATA = { schema: 'purl', purl: 'pkg:npm/%40scope/name@1.2.3?arch=x64' };

/** The files entered by one request of each kind, by a process that seals, and by one that delivers webhooks. */
export async function measureFilesEntered(services: Services, { rows }: Options): Promise<FilesEntered[]> {
  const entered = { ...(await ofRequests(services, rows)), ...(await ofJobs(services)) };
  return Object.entries(entered).map(([path, files]) => ({ path, files: [...files].sort() }));
}

async function ofRequests(services: Services, rows: number): Promise<Record<string, Set<string>>> {
  return withShutdownHooks(async (hooks) => {
    const port = await findFreePort();
    const nodeArgs = [`--inspect=127.0.0.1:${port}`];
    const api = await startNode([ATTEST_MODULES, 'api'], { env: services.env, nodeArgs });
    hooks.add(api.stop);
    const coverage = await openCoverage(port);
    hooks.add(async () => coverage.close());
    const request = async (path: string, body?: string) => {
      const headers = { authorization: `Bearer ${services.apiKey}`, 'content-type': 'application/json' };
      const response = await fetch(`${readyUrl(api)}${path}`, {
        headers,
        ...(body === undefined ? {} : { method: 'POST', body }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    };
    const { createAttestation } = AttestationService.method;
    const creation = () =>
      JSON.stringify({ artifact: { sha256: randomBytes(32).toString('hex') }, metadata: METADATA });
    const [id = '', ...others] = await pickIds(services, rows, 1 + REPEATS);
    const rest = () => request('/v1/attestations', creation());
    const connect = () =>
      request(`/${createAttestation.parent.typeName}/${createAttestation.name}`, creation());
    const bundle = (of = id) => request(`/v1/attestations/${of}/bundle`);
    const bundleOfAnother = () => bundle(others.pop());
    await rest();
    await connect();
    await delay(WAKE_MS);
    const firstBundle = await enteredBy(coverage, bundle, 1);
    return {
      'REST create': await enteredBy(coverage, rest, REPEATS),
      'Connect create': await enteredBy(coverage, connect, REPEATS),
      'bundle read, the first of its process': firstBundle,
      'bundle read': await enteredBy(coverage, bundleOfAnother, REPEATS),
      'bundle read, again': await enteredBy(coverage, bundle, REPEATS),
    };
  });
}

/** What every one of some repeats has entered: timers run beside some of them only. */
async function enteredBy(
  { take }: CoverageSession,
  act: () => Promise<void>,
  repeats: number,
): Promise<Set<string>> {
  let always: Set<string> | undefined;
  for (let i = 0; i < repeats; i++) {
    await take();
    await act();
    const now = await take();
    always = always === undefined ? now : new Set([...always].filter((file) => now.has(file)));
  }
  return always ?? new Set();
}

async function ofJobs(services: Services): Promise<Record<string, Set<string>>> {
  return withShutdownHooks(async (hooks) => {
    const { databaseUrl, dir, env } = services;
    const seal = { databaseUrl, dir, registerDir: env.CHECKPOINT_REGISTER, batchMaxLeaves: 1_000 };
    const sealed = await runCovered([benchScript('stages/seal-process'), JSON.stringify(seal)]);
    const receiver = await startNode([benchScript('stages/webhook-receiver'), '1']);
    hooks.add(receiver.stop);
    const pool = openPool(databaseUrl, hooks);
    const webhookIds = await subscribe(pool, services, JSON.parse(receiver.ready) as string[]);
    await layRanges(pool, webhookIds, EVENTS);
    const send = { kind: 'send', databaseUrl, dir, webhookIds, count: EVENTS };
    const delivered = await runCovered([benchScript('stages/webhook-process'), JSON.stringify(send)]);
    return {
      'webhook delivery': delivered.onceUp,
      'webhook delivery, from the start of its process': delivered.all,
      seal: sealed.onceUp,
      'seal, from the start of its process': sealed.all,
    };
  });
}
