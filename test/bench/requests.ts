import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { withShutdownHooks } from '../../src/server/core/shutdown.js';
import { untilAtRest } from './cpu.js';
import { pickIds } from './fill.js';
import { listCases } from './lists.js';
import { type LoadGenerator, type LoadResult, type Meter, sampleLoad, sampleRun } from './load.js';
import type { Options } from './options.js';
import { benchScript, type NodeProcess, peakMib, runNode, startNode } from './process.js';
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
type Start = (args: string[]) => Promise<NodeProcess>;

/**
 * Runs one measure against an api and a worker process of its own, so that each starts equally fresh and the memory
 * peaks are its own.
 */
async function withRoles(
  { services, options }: RequestMeasures,
  name: string,
  contend: (roles: Roles, start: Start) => Promise<{ contenders: Contender[]; bytes?: number }>,
): Promise<Measurement> {
  const profileDir = options.profileDir && join(options.profileDir, name);
  const measurement = await withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const nodeArgs = profileDir === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDir];
    const api = await startRole(services, 'api', { nodeArgs });
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

/** The processes whose time counts: with the service also its worker's, until all it was given is witnessed. */
function meterOf({ pids }: Services, server: NodeProcess, worker?: NodeProcess): Meter {
  const roots = { server: server.pid, ...pids };
  if (worker === undefined) return { roots };
  return { roots: { ...roots, worker: worker.pid }, settle: () => untilAtRest(worker.pid) };
}

/** Creation beside a handler that does only what the specification wants of each; then over the other surfaces. */
export async function measureCreate(deps: RequestMeasures): Promise<Measurement> {
  const { services, generator, options } = deps;
  const bareUrl = await services.createDatabase('bare');
  return withRoles(deps, 'create', async ({ api, worker }, start) => {
    const limit = await start([benchScript('limit-server'), 'create', join(services.dir, 'bare'), bareUrl]);
    const { createAttestation } = AttestationService.method;
    const rpcPath = `/${createAttestation.parent.typeName}/${createAttestation.name}`;
    const path = '/v1/attestations';
    const post = (server: NodeProcess, meter: Meter, what: { path: string; keyed?: boolean }) => {
      const load = { baseUrl: readyUrl(server), apiKey: services.apiKey, method: 'post', ...what } as const;
      return (seconds: number) => sampleLoad(generator, meter, { ...load, seconds });
    };
    const meter = meterOf(services, api, worker);
    const contenders = [
      { name: FAIR, run: post(limit, meterOf(services, limit), { path }) },
      { name: 'REST', run: post(api, meter, { path }) },
    ];
    if (options.compared) return { contenders };
    return {
      contenders: [
        ...contenders,
        { name: 'REST, Idempotency-Key', run: post(api, meter, { path, keyed: true }) },
        { name: 'Connect, JSON', run: post(api, meter, { path: rpcPath }) },
        { name: 'gRPC', run: (seconds) => sampleGrpc(services, { server: api, meter }, seconds) },
      ],
    };
  });
}

/** The first contender of creates. */
const FAIR = 'bare Fastify: signature, hashes, row';

function sampleGrpc(
  { apiKey }: Services,
  { server, meter }: { server: NodeProcess; meter: Meter },
  seconds: number,
): Promise<Sample> {
  const load = JSON.stringify({ baseUrl: readyUrl(server), apiKey, seconds });
  return sampleRun(meter, () => runNode<LoadResult>([benchScript('grpc-load'), load]));
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

/** A kind of read over many submissions, beside a handler that reads as much from Postgres, and one that need not. */
export async function measureRead(deps: RequestMeasures, name: keyof typeof READS): Promise<Measurement> {
  const { services, generator, options } = deps;
  return withRoles(deps, name, async ({ api, worker }, start) => {
    const paths = READS[name](await pickIds(services, options.rows, name === 'cold' ? MANY_IDS : FEW_IDS));
    const answer = await fetchTypical(readyUrl(api), paths, services.apiKey);
    const answerFile = join(services.dir, `${name}.json`);
    await writeFile(answerFile, answer);
    const limits = await startLimits(deps, name, answerFile, start);
    const get = async (server: NodeProcess, what: string, paths: readonly string[]) => {
      const pathsFile = join(services.dir, `${name} ${what}`.replaceAll(/\W+/g, '-'));
      await writeFile(pathsFile, `${paths.join('\n')}\n`);
      const load = {
        baseUrl: readyUrl(server),
        apiKey: services.apiKey,
        method: 'get',
        paths: pathsFile,
      } as const;
      const meter = meterOf(services, server, server === api ? worker : undefined);
      return { name: what, run: (seconds: number) => sampleLoad(generator, meter, { ...load, seconds }) };
    };
    const contenders = [
      await get(limits.fair.server, limits.fair.name, paths),
      await get(api, 'REST', paths),
    ];
    if (options.compared) return { bytes: answer.length, contenders };
    const more: [string, readonly string[]][] =
      name === 'cold' ? [['REST, bundle', paths.map((path) => `${path}/bundle`)]] : [];
    if (name === 'list')
      more.push(
        ...(await listCases(services)).map(({ name, path }): [string, string[]] => [`REST, ${name}`, [path]]),
      );
    for (const [what, these] of more) contenders.push(await get(api, what, these));
    contenders.push(await get(await limits.startMemory(), 'bare Fastify, bytes in memory', paths));
    return { bytes: answer.length, contenders };
  });
}

/** The handler that reads are held against, and one that answers from memory. */
async function startLimits({ services }: RequestMeasures, name: string, answerFile: string, start: Start) {
  const script = benchScript('limit-server');
  const startMemory = () => start([script, 'bytes', answerFile]);
  if (name === 'list') {
    const { databaseUrl, projectId } = services;
    const server = await start([script, 'list', answerFile, databaseUrl, projectId]);
    return { fair: { server, name: 'bare Fastify, 51 rows and a template' }, startMemory };
  }
  const server = await start([script, 'rows', answerFile, await services.createDatabase(`bare_${name}`)]);
  return { fair: { server, name: 'bare Fastify, a row of Postgres' }, startMemory };
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
