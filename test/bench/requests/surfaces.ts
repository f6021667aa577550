import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { pickIds } from '../fill.js';
import { type LoadResult, sampleRun } from '../load/load.js';
import { ATTEST, benchScript, runNode, type StartedProcess } from '../process.js';
import { meterOf, type RequestMeasures } from '../roles.js';
import { type Contender, measureInTurns, type Spread, spreadOf } from '../rounds.js';
import { readyUrl, startRole } from '../services.js';
import { getter, poster } from './requests.js';

/** What a call of a surface costs the API process: microseconds of CPU of two builds, and their ratio in each round. */
export type Surface = { name: string; before: number; after: number; ratio: Spread };

const FEW_IDS = 2_000;
const { createAttestation } = AttestationService.method;
const RPC_PATH = `/${createAttestation.parent.typeName}/${createAttestation.name}`;

/** Compares calls of this build with those of another (`--program`), in turns over the same database. */
export async function measureSurfaces(deps: RequestMeasures): Promise<Surface[]> {
  const { services, options } = deps;
  if (options.program === undefined) {
    throw new Error('surfaces compares two builds: name the main.js of the other with --program');
  }
  const ids = await pickIds(services, options.rows, FEW_IDS);
  const { program } = options;
  return withShutdownHooks(async (hooks) => {
    const start = async (main: string) => {
      const api = await startRole(services, 'api', { program: main });
      hooks.add(api.stop);
      return contendersOf(deps, api, ids);
    };
    const [others, ours] = [await start(program), await start(ATTEST)];
    const surfaces: Surface[] = [];
    for (const [i, other] of others.entries()) {
      surfaces.push(await compare(other, ours[i] as Contender, options));
    }
    return surfaces;
  });
}

async function contendersOf(
  deps: RequestMeasures,
  api: StartedProcess,
  ids: readonly string[],
): Promise<Contender[]> {
  const meter = meterOf(deps.services, api);
  const post = poster(deps);
  const get = getter(deps);
  const path = '/v1/attestations';
  const server = { server: api, meter };
  const rpc = (name: string, contentType: string): Contender => ({
    name,
    run: (seconds) => {
      const load = { baseUrl: readyUrl(api), apiKey: deps.services.apiKey, seconds, contentType };
      return sampleRun(meter, () =>
        runNode<LoadResult>([benchScript('load/grpc-load'), JSON.stringify(load)]),
      );
    },
  });
  const paths = (suffix: string) => ids.map((id) => `${path}/${id}${suffix}`);
  return [
    { name: 'REST create', run: post(api, meter, { path }) },
    await get('REST get', server, paths('')),
    await get('REST bundle', server, paths('/bundle')),
    { name: 'Connect create, JSON', run: post(api, meter, { path: RPC_PATH }) },
    rpc('Connect create, proto, HTTP/2', 'application/proto'),
    rpc('gRPC create', 'application/grpc+proto'),
    rpc('gRPC-Web create, HTTP/2', 'application/grpc-web+proto'),
  ];
}

async function compare(
  other: Contender,
  ours: Contender,
  time: Parameters<typeof measureInTurns>[1],
): Promise<Surface> {
  const [before, after] = await measureInTurns([other, ours], time);
  const failed = (before?.failed ?? 0) + (after?.failed ?? 0);
  if (failed > 0) throw new Error(`${failed} calls of ${ours.name} failed`);
  const ratios = (after?.samples ?? []).map(
    ({ cpuMicros = 0 }, i) => cpuMicros / (before?.samples[i]?.cpuMicros ?? Number.NaN),
  );
  return {
    name: ours.name,
    before: before?.cpuMicros ?? 0,
    after: after?.cpuMicros ?? 0,
    ratio: spreadOf(ratios) ?? { min: 0, median: 0, max: 0 },
  };
}

/** A line for each surface. */
export function surfaceLines(surfaces: readonly Surface[]): string {
  const lines = surfaces.map(({ name, before, after, ratio: { min, median, max } }) => {
    const spread = `${min.toFixed(2)} to ${max.toFixed(2)}`;
    return `  ${name.padEnd(32)}${before.toFixed(0).padStart(6)} → ${after.toFixed(0).padStart(4)} µs  ${median.toFixed(2)} (${spread})`;
  });
  return ['CPU of the API process per call, the other build → this one, and the ratio', ...lines].join('\n');
}
