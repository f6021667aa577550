import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { withShutdownHooks } from '../../src/server/core/shutdown.js';
import { pickIds } from './fill.js';
import { listCases } from './lists.js';
import { type LoadGenerator, type LoadResult, sampleLoad } from './load.js';
import type { Options } from './options.js';
import { benchScript, cpuMs, type NodeProcess, peakMib, runNode, startNode } from './process.js';
import { findProfile, printProfile } from './profile.js';
import { type Contender, measureInTurns, type Sample, type Summary } from './rounds.js';
import { readyUrl, type Services, startRole } from './services.js';

/** The figures of one measure, and the memory peaks of the two processes while it ran. */
export type Measurement = {
  name: string;
  summaries: Summary[];
  /** Bytes of an answer; undefined where it is not the same for both. */
  bytes?: number;
  apiMib: number | undefined;
  workerMib: number | undefined;
};

/** What every measure of requests is given. */
export type RequestMeasures = { services: Services; generator: LoadGenerator; options: Options };

type Roles = { api: NodeProcess; worker: NodeProcess };

/**
 * Runs one measure against an api and a worker process of its own, so that each starts equally fresh and the memory
 * peaks are its own.
 */
async function withRoles(
  { services, options }: RequestMeasures,
  name: string,
  contend: (
    roles: Roles,
    start: (args: string[]) => Promise<NodeProcess>,
  ) => Promise<{
    contenders: Contender[];
    bytes?: number;
  }>,
): Promise<Measurement> {
  const profileDir = options.profileDir && join(options.profileDir, name);
  const measurement = await withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const nodeArgs = profileDir === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDir];
    const api = await startRole(services, 'api', nodeArgs);
    hooks.add(api.stop);
    const start = async (args: string[]) => {
      const started = await startNode(args);
      hooks.add(started.stop);
      return started;
    };
    const { contenders, bytes } = await contend({ api, worker }, start);
    // A profile is of one surface.
    const measured = profileDir === undefined ? contenders : contenders.slice(0, 2);
    const summaries = await measureInTurns(measured, options);
    return {
      name,
      summaries,
      ...(bytes === undefined ? {} : { bytes }),
      apiMib: peakMib(api.pid),
      workerMib: peakMib(worker.pid),
    };
  });
  if (profileDir !== undefined) await printProfile(name, await findProfile(profileDir));
  return measurement;
}

/** Creation beside a handler that stores as many bytes in the same Postgres; then over the other surfaces. */
export async function measureCreate(deps: RequestMeasures): Promise<Measurement> {
  const { services, generator } = deps;
  const bareUrl = await services.createDatabase('bare');
  return withRoles(deps, 'create', async ({ api }, start) => {
    const limit = await start([benchScript('limit-server'), 'create', bareUrl]);
    const { createAttestation } = AttestationService.method;
    const rpcPath = `/${createAttestation.parent.typeName}/${createAttestation.name}`;
    const post =
      (server: NodeProcess, path: string, keyed = false) =>
      (seconds: number) =>
        sampleLoad(generator, server.pid, {
          baseUrl: readyUrl(server),
          apiKey: services.apiKey,
          seconds,
          method: 'post',
          path,
          keyed,
        });
    return {
      contenders: [
        { name: 'bare Fastify, gathered inserts', run: post(limit, '/v1/attestations') },
        { name: 'REST', run: post(api, '/v1/attestations') },
        { name: 'REST, Idempotency-Key', run: post(api, '/v1/attestations', true) },
        { name: 'Connect, JSON', run: post(api, rpcPath) },
        { name: 'gRPC', run: (seconds) => sampleGrpc(services, api, seconds) },
      ],
    };
  });
}

async function sampleGrpc({ apiKey }: Services, api: NodeProcess, seconds: number): Promise<Sample> {
  const before = cpuMs(api.pid) ?? Number.NaN;
  const load = JSON.stringify({ baseUrl: readyUrl(api), apiKey, seconds });
  const result = await runNode<LoadResult>([benchScript('grpc-load'), load]);
  const { requests, failed, p50Ms, p99Ms, maxMs } = result;
  const cpuMicros = (((cpuMs(api.pid) ?? Number.NaN) - before) * 1000) / requests;
  return { perSecond: (requests - failed) / result.seconds, p50Ms, p99Ms, maxMs, failed, cpuMicros };
}

/** Over how many submissions reads are spread: few enough to be kept, and many more. */
const FEW_IDS = 2_000;
const MANY_IDS = 50_000;
/** Of how many answers one is taken for the limit to send. */
const TRIED = 25;

/** Where reads of each kind go, given ids of submissions. */
const READS: Record<'read' | 'bundle' | 'cold' | 'list', (ids: readonly string[]) => string[]> = {
  read: (ids) => ids.map((id) => `/v1/attestations/${id}`),
  bundle: (ids) => ids.map((id) => `/v1/attestations/${id}/bundle`),
  cold: (ids) => ids.map((id) => `/v1/attestations/${id}`),
  list: () => ['/v1/attestations?limit=50'],
};

/** A kind of read over many submissions, beside handlers that send as many bytes from memory, and from one row. */
export async function measureRead(deps: RequestMeasures, name: keyof typeof READS): Promise<Measurement> {
  const { services, generator, options } = deps;
  return withRoles(deps, name, async ({ api }, start) => {
    const paths = READS[name](await pickIds(services, options.rows, name === 'cold' ? MANY_IDS : FEW_IDS));
    const others = name === 'list' ? await listCases(services) : [];
    const answer = await fetchTypical(readyUrl(api), paths, services.apiKey);
    const answerFile = join(services.dir, `${name}.json`);
    await writeFile(answerFile, answer);
    const limit = await start([benchScript('limit-server'), 'bytes', answerFile]);
    const bareUrl = await services.createDatabase(`bare_${name}`);
    const rows = await start([benchScript('limit-server'), 'rows', answerFile, bareUrl]);
    const get = async (server: NodeProcess, what: string, paths: readonly string[]) => {
      const pathsFile = join(services.dir, `${name} ${what}`.replaceAll(/\W+/g, '-'));
      await writeFile(pathsFile, `${paths.join('\n')}\n`);
      const { apiKey } = services;
      const load = { baseUrl: readyUrl(server), apiKey, method: 'get', paths: pathsFile } as const;
      const run = (seconds: number) => sampleLoad(generator, server.pid, { ...load, seconds });
      return { name: what, run };
    };
    return {
      bytes: answer.length,
      contenders: [
        await get(limit, 'bare Fastify, bytes in memory', paths),
        await get(api, 'REST', paths),
        await get(rows, 'bare Fastify, a row of Postgres', paths),
        ...(name === 'cold'
          ? [
              await get(
                api,
                'REST, bundle',
                paths.map((path) => `${path}/bundle`),
              ),
            ]
          : []),
        ...(await Promise.all(others.map(({ name, path }) => get(api, `REST, ${name}`, [path])))),
      ],
    };
  });
}

/** Of some answers the one of middle length. */
async function fetchTypical(baseUrl: string, paths: readonly string[], apiKey: string): Promise<Buffer> {
  const answers = await Promise.all(
    paths.slice(0, TRIED).map(async (path) => {
      const answer = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
      return Buffer.from(await answer.arrayBuffer());
    }),
  );
  answers.sort((a, b) => a.length - b.length);
  return answers[answers.length >> 1] ?? Buffer.alloc(0);
}
