import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { pickIds } from '../fill.js';
import { type LoadResult, type Meter, sampleLoad, sampleRun } from '../load/load.js';
import { benchScript, runNode, type StartedProcess } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures, type Start, withRoles } from '../roles.js';
import type { Contender, Sample } from '../rounds.js';
import { readyUrl, type Services } from '../services.js';
import { listCases } from './lists.js';

/** Creation beside a handler that does only what the specification wants of each; then over the other surfaces. */
export async function measureCreate(deps: RequestMeasures): Promise<Measurement> {
  const { services, options } = deps;
  const bareUrl = await services.createDatabase('bare');
  return withRoles(deps, 'create', async ({ api, worker }, start) => {
    const limit = await start([
      benchScript('limit/limit-server'),
      'create',
      join(services.dir, 'bare'),
      bareUrl,
    ]);
    const { createAttestation } = AttestationService.method;
    const rpcPath = `/${createAttestation.parent.typeName}/${createAttestation.name}`;
    const path = '/v1/attestations';
    const post = poster(deps);
    const meter = meterOf(services, api, worker);
    const contenders = [
      { name: FAIR, run: post(limit, meterOf(services, limit), { path }) },
      { name: 'REST', run: post(api, meter, { path }) },
    ];
    if (options.compared) return { contenders };
    return {
      contenders: [
        ...contenders,
        { name: 'REST, a test result', run: post(api, meter, { path, rest: `${RESULT}}` }) },
        {
          name: 'REST, a test result, public',
          run: post(api, meter, { path, rest: `${RESULT},"statement":"public"}` }),
        },
        { name: 'REST, Idempotency-Key', run: post(api, meter, { path, keyed: true }) },
        { name: 'Connect, JSON', run: post(api, meter, { path: rpcPath }) },
        { name: 'gRPC', run: (seconds) => sampleGrpc(services, { server: api, meter }, seconds) },
      ],
    };
  });
}

/** A test result as `attest submit` makes it of a report of 20 tests. */
const RESULT = `"metadata":${JSON.stringify({
  schema: 'intoto.test_result.v0.1',
  result: 'PASSED',
  configuration: [{ name: 'vitest.config.ts', uri: 'https://example.com/acme/app/vitest.config.ts' }],
  url: 'https://ci.example.com/acme/app/runs/4711',
  passedTests: Array.from({ length: 20 }, (_, i) => `checkout > takes the card of country number ${i}`),
})}`;

/** Sends creates to a server. */
export function poster({ services, generator }: RequestMeasures) {
  return (server: StartedProcess, meter: Meter, what: { path: string; keyed?: boolean; rest?: string }) => {
    const load = { baseUrl: readyUrl(server), apiKey: services.apiKey, method: 'post', ...what } as const;
    return (seconds: number): Promise<Sample> => sampleLoad(generator, meter, { ...load, seconds });
  };
}

/** The first contender of creates. */
const FAIR = 'bare Fastify: signature, hashes, row';

function sampleGrpc(
  { apiKey }: Services,
  { server, meter }: { server: StartedProcess; meter: Meter },
  seconds: number,
): Promise<Sample> {
  const load = JSON.stringify({ baseUrl: readyUrl(server), apiKey, seconds });
  return sampleRun(meter, () => runNode<LoadResult>([benchScript('load/grpc-load'), load]));
}

/** Over how many submissions reads are spread: few enough to be kept. */
const FEW_IDS = 2_000;
/** Of how many answers one is taken for the limit to send. */
const TRIED = 25;
/** Lists that are measured under load; `plans` has all. */
const LISTS = ['status=witnessed', 'a schema nobody uses', 'all together'];

/** Where reads of each kind go, given ids of submissions. */
const READS: Record<'read' | 'bundle' | 'list', (ids: readonly string[]) => string[]> = {
  read: (ids) => ids.map((id) => `/v1/attestations/${id}`),
  bundle: (ids) => ids.map((id) => `/v1/attestations/${id}/bundle`),
  list: () => ['/v1/attestations?limit=50'],
};

/** A kind of read over many submissions, beside a handler that reads as much from Postgres, and one that need not. */
export async function measureRead(deps: RequestMeasures, name: keyof typeof READS): Promise<Measurement> {
  const { services, options } = deps;
  return withRoles(deps, name, async ({ api, worker }, start) => {
    const paths = READS[name](await pickIds(services, options.rows, FEW_IDS));
    const answer = await fetchTypical(readyUrl(api), paths, services.apiKey);
    const answerFile = join(services.dir, `${name}.json`);
    await writeFile(answerFile, answer);
    const get = getter(deps);
    const { server, ...limit } = await startLimit(deps, name, answerFile, start);
    const service = { server: api, meter: meterOf(services, api, worker) };
    const contenders = [
      await get(limit.name, { server, meter: meterOf(services, server) }, paths),
      await get('REST', service, paths),
    ];
    if (options.compared) return { bytes: answer.length, contenders };
    for (const list of name === 'list' ? await listCases(services) : [])
      if (LISTS.includes(list.name)) contenders.push(await get(`REST, ${list.name}`, service, [list.path]));
    const memory = await start([benchScript('limit/limit-server'), 'bytes', answerFile]);
    const meter = meterOf(services, memory);
    contenders.push(await get('bare Fastify, bytes in memory', { server: memory, meter }, paths));
    return { bytes: answer.length, contenders };
  });
}

/** The handler that a kind of read is held against. */
async function startLimit({ services }: RequestMeasures, name: string, answerFile: string, start: Start) {
  const script = benchScript('limit/limit-server');
  if (name === 'list') {
    const { databaseUrl, projectId } = services;
    const server = await start([script, 'list', answerFile, databaseUrl, projectId]);
    return { server, name: 'bare Fastify, 51 rows and a template' };
  }
  const server = await start([script, 'rows', answerFile, await services.createDatabase(`bare_${name}`)]);
  return { server, name: 'bare Fastify, a row of Postgres' };
}

/** Makes contenders that read some paths of a server at random. */
export function getter({ services, generator }: RequestMeasures) {
  return async (
    name: string,
    { server, meter }: { server: StartedProcess; meter: Meter },
    paths: readonly string[],
  ): Promise<Contender> => {
    const pathsFile = join(services.dir, `paths-${server.pid}-${name}`.replaceAll(/\W+/g, '-'));
    await writeFile(pathsFile, `${paths.join('\n')}\n`);
    const load = {
      baseUrl: readyUrl(server),
      apiKey: services.apiKey,
      method: 'get',
      paths: pathsFile,
    } as const;
    return { name, run: (seconds) => sampleLoad(generator, meter, { ...load, seconds }) };
  };
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
