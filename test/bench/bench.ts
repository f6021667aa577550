// Measures the service, each figure beside its own limit in the same run. `--help` says what can be chosen.
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { createShutdownHooks, type ShutdownHooks } from '../../src/server/core/shutdown.js';
import { measureClient } from './client/client.js';
import { clientLines } from './client/client-report.js';
import {
  appendEntry,
  compareLines,
  currentCommit,
  type Entry,
  entryOf,
  findEntry,
  readEntries,
} from './figures.js';
import { measureFilesEntered } from './files/files-entered.js';
import { fillService, openSizes, type ServiceOfSize } from './fill.js';
import { measureHostile } from './hostile/hostile.js';
import { openLoadGenerator } from './load/load.js';
import { measureAudit } from './log/audit.js';
import { measureProofs } from './log/proofs.js';
import { HELP, type MeasureName, type Options, readOptions } from './options.js';
import { stopAll } from './process.js';
import {
  auditLines,
  cadenceLines,
  describeMachine,
  exportsLines,
  filesLines,
  filledLine,
  hostileLines,
  machineLine,
  planLines,
  proofsLines,
  type Report,
  sealLines,
  webhooksLines,
  witnessedLines,
} from './report.js';
import { measureBatch } from './requests/batch.js';
import { measureCold } from './requests/cold.js';
import { measureKeyed } from './requests/keyed.js';
import { explainLists } from './requests/lists.js';
import { measurePaced } from './requests/paced.js';
import { measurePeers } from './requests/peers.js';
import { measureProcesses } from './requests/processes.js';
import { requestLines } from './requests/request-report.js';
import { measureCreate, measureRead } from './requests/requests.js';
import { measureSurfaces, surfaceLines } from './requests/surfaces.js';
import { measureTraced } from './requests/traced.js';
import { measureWitnessed } from './requests/witnessed.js';
import type { Measurement } from './roles.js';
import { startServices } from './services.js';
import { measureCadence } from './stages/cadence.js';
import { measureExports } from './stages/exports.js';
import { measureSeal } from './stages/seal.js';
import { measureWebhooks } from './stages/webhooks.js';

const hooks = createShutdownHooks();
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (interrupted) return;
    interrupted = true;
    // What is being measured ends with the process; what was started before is stopped in order.
    void stopAll()
      .then(() => hooks.run())
      .finally(() => process.exit(128 + constants.signals[signal]));
  });
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) console.log(HELP);
  else await bench(options, hooks);
} catch (error) {
  if (!interrupted) console.error((error as Error).message);
  process.exitCode = 1;
} finally {
  if (!interrupted) await hooks.run();
}

async function bench(options: Options, hooks: ShutdownHooks): Promise<void> {
  const generator = await openLoadGenerator();
  const machine = describeMachine(generator);
  console.log(machineLine(machine));
  // An unknown commit, or changes that are not committed, are errors before anything is measured.
  if (options.record) await currentCommit(true);
  const entry =
    options.compareWith === undefined ? undefined : findEntry(await readEntries(), options.compareWith);
  const services = await startServices(hooks);
  const serviceOf = openSizes(services, options.rows, hooks);
  const deps = { services, generator, options, serviceOf };
  const filled = await fillService(services, options.rows);
  console.log(filledLine(options.rows, filled));
  const report: Report = { machine, rows: options.rows, filled, requests: [] };
  for (const name of options.only) {
    const startedMs = performance.now();
    console.log(await measure(name, deps, report));
    console.log(`${name} took ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  }
  await compareFigures(report, options, entry);
  const json = JSON.stringify(report, null, 2);
  if (options.jsonFile !== undefined) await writeFile(options.jsonFile, `${json}\n`);
  else console.log(`\n${json}`);
}

/** Prints, and records, what `--compare` and `--record` ask for. */
async function compareFigures(
  { requests, machine }: Report,
  options: Options,
  other: Entry | undefined,
): Promise<void> {
  if (!options.compared) return;
  const commit = await currentCommit(options.record);
  const entry = entryOf(requests, { commit, machine, rounds: options.rounds });
  if (other !== undefined) console.log(compareLines(entry, other));
  if (!options.record) return;
  await appendEntry(entry);
  console.log(`recorded ${commit} in test/bench/figures.json`);
}

type MeasureDeps = Parameters<typeof measureCreate>[0] & { serviceOf: ServiceOfSize };

/** Measures one thing, adds it to the report, and returns its lines. */
async function measure(name: MeasureName, deps: MeasureDeps, report: Report): Promise<string> {
  const { services, options } = deps;
  switch (name) {
    case 'seal':
      report.seal = await measureSeal(services, options);
      return sealLines(report.seal);
    case 'proofs':
      report.proofs = await measureProofs(deps.serviceOf, options);
      return proofsLines(report.proofs);
    case 'plans':
      report.plans = await explainLists(services);
      return planLines(report.plans);
    case 'webhooks':
      report.webhooks = await measureWebhooks(services, options);
      return webhooksLines(report.webhooks);
    case 'exports':
      report.exports = await measureExports(services, options);
      return exportsLines(report.exports);
    case 'hostile':
      report.hostile = await measureHostile(services, options);
      return hostileLines(report.hostile);
    case 'surfaces':
      report.surfaces = await measureSurfaces(deps);
      return surfaceLines(report.surfaces);
    case 'audit':
      report.audit = await measureAudit(services, options);
      return auditLines(report.audit);
    case 'files':
      report.files = await measureFilesEntered(services, options);
      return filesLines(report.files);
    case 'client':
      report.client = await measureClient(services, options);
      return clientLines(report.client);
    case 'cadence':
      report.cadence = await measureCadence(services, options);
      return cadenceLines(report.cadence);
    case 'witnessed':
      report.witnessed = await measureWitnessed(services, options);
      return witnessedLines(report.witnessed);
    default: {
      const measured = await measureRequests(name, deps);
      report.requests.push(...measured);
      return measured.map(requestLines).join('\n');
    }
  }
}

type RequestMeasure =
  | 'create'
  | 'batch'
  | 'peers'
  | 'keyed'
  | 'paced'
  | 'traced'
  | 'processes'
  | 'read'
  | 'bundle'
  | 'cold'
  | 'list';

async function measureRequests(name: RequestMeasure, deps: MeasureDeps): Promise<Measurement[]> {
  if (name === 'create') return [await measureCreate(deps)];
  if (name === 'batch') return [await measureBatch(deps)];
  if (name === 'peers') return [await measurePeers(deps)];
  if (name === 'keyed') return [await measureKeyed(deps)];
  if (name === 'traced') return [await measureTraced(deps)];
  if (name === 'paced') return [await measurePaced(deps)];
  if (name === 'cold') return measureCold(deps, deps.serviceOf);
  return name === 'processes' ? measureProcesses(deps) : [await measureRead(deps, name)];
}
