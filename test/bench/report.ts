import { cpus, loadavg, totalmem } from 'node:os';
import type { ClientMeasurement } from './client/client.js';
import type { FilesEntered } from './files/files-entered.js';
import type { HostileRow } from './hostile/hostile.js';
import type { LoadGenerator } from './load/load.js';
import type { AuditMeasurement } from './log/audit.js';
import type { ProofsMeasurement } from './log/proofs.js';
import type { ListPlan } from './requests/lists.js';
import { cpuLines } from './requests/request-report.js';
import type { Surface } from './requests/surfaces.js';
import type { WitnessedMeasurement } from './requests/witnessed.js';
import type { Measurement } from './roles.js';
import type { Summary } from './rounds.js';
import type { CadenceMeasurement } from './stages/cadence.js';
import type { ExportsMeasurement } from './stages/exports.js';
import type { SealMeasurement } from './stages/seal.js';
import type { SealResult } from './stages/seal-process.js';
import type { WebhooksMeasurement } from './stages/webhooks.js';
import { fixed, table, whole } from './table.js';

/** The machine that the figures are of. */
export type Machine = {
  node: string;
  platform: string;
  cpu: string;
  cores: number;
  memoryMib: number;
  /** Of the minute before: more than nearly none says that others were at work. */
  loadBefore: number;
  generator: string;
};

/** Everything that was measured; what was not asked for is absent. */
export type Report = {
  machine: Machine;
  /** Submissions in the tables before. */
  rows: number;
  /** What sealing them took. */
  filled: SealResult;
  requests: Measurement[];
  proofs?: ProofsMeasurement[];
  plans?: ListPlan[];
  seal?: SealMeasurement;
  witnessed?: WitnessedMeasurement;
  cadence?: CadenceMeasurement;
  webhooks?: WebhooksMeasurement;
  exports?: ExportsMeasurement;
  hostile?: HostileRow[];
  surfaces?: Surface[];
  audit?: AuditMeasurement;
  files?: FilesEntered[];
  client?: ClientMeasurement;
};

export function describeMachine({ name }: LoadGenerator): Machine {
  const processors = cpus();
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: processors[0]?.model ?? 'unknown',
    cores: processors.length,
    memoryMib: Math.round(totalmem() / 1024 / 1024),
    loadBefore: loadavg()[0] ?? 0,
    generator: name,
  };
}

export function machineLine({
  node,
  platform,
  cpu,
  cores,
  memoryMib,
  loadBefore,
  generator,
}: Machine): string {
  const machine = `${cores} cores (${cpu}), ${memoryMib} MiB, ${platform}, Node ${node}`;
  return `${machine}; load by ${generator}; load average before ${loadBefore.toFixed(2)}`;
}

/** One line a list: how much it read, and by which indexes. */
export function planLines(plans: readonly ListPlan[]): string {
  const rows = plans.map(({ name, planFor, rows, buffers, ms, scans }) => [
    `${name}, planned for ${planFor}`,
    whole(rows),
    whole(buffers),
    ms.toFixed(2),
    `  ${scans.join(', ')}`,
  ]);
  return `\nplans of lists of 50\n${table([['', 'rows read', 'pages', 'ms', ''], ...rows])}`;
}

export function sealLines({ leaves, summaries, workerMib }: SealMeasurement): string {
  const seconds = ({ cpuMicros = 0 }: Summary, count: number) => ((cpuMicros * count) / 1e6).toFixed(2);
  const rows = summaries.map((summary) => [
    summary.name,
    seconds(summary, leaves),
    seconds(summary, 1_000_000),
    summary.ratio.toFixed(2),
  ]);
  const columns = ['', `CPU s for ${leaves}`, 'per million', 'of limit'];
  return `\nseal\n${table([columns, ...rows])}\npeak memory: ${whole(workerMib)} MiB`;
}

export function witnessedLines(result: WitnessedMeasurement): string {
  const { perSecond, wantedPerSecond, failed, createP50Ms, createP99Ms, samples } = result;
  return [
    `\nwitnessed: ${whole(perSecond)} of ${wantedPerSecond} submissions/s to attest up, ${failed} failed`,
    `201 after p50 ${fixed(createP50Ms)} ms, p99 ${fixed(createP99Ms)} ms`,
    `witnessed after median ${whole(result.medianMs)} ms, p95 ${whole(result.p95Ms)} ms, max ${whole(result.maxMs)} ms (${samples} looked at)`,
    `peak memory: ${whole(result.upMib)} MiB`,
  ].join('\n');
}

export function webhooksLines({ count, byEndpoints, fanOut, workerMib }: WebhooksMeasurement): string {
  const row = ({ name, perSecond, ratio }: Summary, isCompared = true) => [
    name,
    whole(perSecond),
    isCompared ? ratio.toFixed(2) : '',
  ];
  const named = byEndpoints.map(({ endpoints, summaries }) =>
    summaries.map((summary) => ({ ...summary, name: `${summary.name}, ${endpoints} endpoint(s)` })),
  );
  const rows = named.flatMap((summaries) => summaries.map((summary) => row(summary)));
  for (const summary of fanOut) rows.push(row(summary, false));
  return [
    `\nwebhooks, ${count} a round`,
    table([['', 'per second', 'of limit'], ...rows]),
    cpuLines([...named.flat(), ...fanOut]),
    `peak memory: ${whole(workerMib)} MiB`,
  ].join('\n');
}

export function exportsLines({ rows, bytes, summaries, grownMib }: ExportsMeasurement): string {
  const columns = ['', 'rows a second', 'CPU µs each', 'of limit'];
  const lines = summaries.map(({ name, perSecond, cpuMicros, ratio }) => [
    name,
    whole(perSecond),
    whole(cpuMicros),
    ratio.toFixed(2),
  ]);
  const size = `${rows} rows, ${whole(bytes / 1024 / 1024)} MiB`;
  return `\nexports, a batch of ${size}\n${table([columns, ...lines])}\ngrown by ${whole(grownMib)} MiB above idle`;
}

/** Of each size this process and Postgres, and what the bundle takes in all; then the time of one by the clock. */
export function proofsLines(measured: readonly ProofsMeasurement[]): string {
  const cpu = measured.map((of) => [
    whole(of.leaves),
    ...[of.row, of.proof, of.bundle].flatMap((cost) => [fixed(cost.cpuMicros), fixed(cost.postgresMicros)]),
    fixed(bothMicros(of)),
    ofFirst(measured, of, bothMicros),
  ]);
  const elapsed = measured.map((of) => [
    whole(of.leaves),
    ...[of.row, of.proof, of.bundle].map(({ elapsedMicros }) => fixed(elapsedMicros)),
    ofFirst(measured, of, ({ proof }) => proof.elapsedMicros),
    ofFirst(measured, of, ({ bundle }) => bundle.elapsedMicros),
  ]);
  return [
    '\nproofs that are not kept, CPU µs each',
    table([PROOFS_CPU_COLUMNS, ...cpu]),
    '\nthe same one after the other, median µs by the clock',
    table([PROOFS_ELAPSED_COLUMNS, ...elapsed]),
  ].join('\n');
}

const PROOFS_CPU_COLUMNS = [
  'leaves',
  'row',
  'Postgres',
  'and proof',
  'Postgres',
  'and bundle',
  'Postgres',
  'all',
  'of first',
];
const PROOFS_ELAPSED_COLUMNS = [
  'leaves',
  'row',
  'and proof',
  'and bundle',
  'proof of first',
  'bundle of first',
];

function bothMicros({ bundle }: ProofsMeasurement): number {
  return bundle.cpuMicros + bundle.postgresMicros;
}

/** How many times that of the first size; `-` without one. */
function ofFirst(
  [first]: readonly ProofsMeasurement[],
  of: ProofsMeasurement,
  micros: (of: ProofsMeasurement) => number,
): string {
  return first === undefined ? '-' : (micros(of) / micros(first)).toFixed(2);
}

/** How often each witness was called in the simulated time. */
export function cadenceLines({ hours, submissions, batches, witnessed, calls }: CadenceMeasurement): string {
  const columns = ['', 'kind', 'every', 'requests', 'polls', 'submissions a request'];
  const rows = calls.map(({ name, kind, everySeconds, requests, polls }) => [
    name,
    kind,
    everySeconds === 0 ? 'checkpoint' : `${everySeconds} s`,
    whole(requests),
    whole(polls),
    requests === 0 ? '' : whole(submissions / requests),
  ]);
  const what = `${hours} h simulated, ${submissions} submissions in ${batches} batches, ${witnessed} witnessed`;
  return `\ncalls of witnesses, ${what}\n${table([columns, ...rows])}`;
}

export function auditLines({ leaves, summaries, seconds, peakMib }: AuditMeasurement): string {
  const rows = summaries.map(({ name, perSecond, cpuMicros, ratio }) => [
    name,
    whole(perSecond),
    fixed(cpuMicros),
    ratio.toFixed(2),
  ]);
  const columns = ['', 'leaves per CPU s', 'CPU µs each', 'of limit'];
  const clock = `${leaves} leaves in ${seconds.toFixed(1)} s, ${whole(leaves / seconds)} a second by the clock`;
  return `\naudit\n${table([columns, ...rows])}\n${clock}; peak memory: ${whole(peakMib)} MiB`;
}

const HOSTILE_COLUMNS = [
  '',
  'bytes sent',
  'api CPU ms',
  'Postgres',
  'µs/byte',
  'grown MiB',
  'peak',
  '/livez ms',
];

export function hostileLines(attacks: readonly HostileRow[]): string {
  const rows = attacks.map((row) => [
    row.failure === undefined ? row.name : `${row.name} (${row.failure})`,
    whole(row.bytes),
    whole(row.apiCpuMs),
    whole(row.postgresCpuMs),
    row.cpuMicrosPerByte.toFixed(2),
    whole(row.grownMib),
    whole(row.peakMib),
    whole(row.livezMs),
  ]);
  return `\nattacks\n${table([HOSTILE_COLUMNS, ...rows])}`;
}

/** How many source files each way enters; `--json` has their names. */
export function filesLines(entered: readonly FilesEntered[]): string {
  const rows = entered.map(({ path, files }) => [path, whole(files.length)]);
  return `\nsource files entered\n${table([['', 'files'], ...rows])}`;
}

export function filledLine(rows: number, { cpuSeconds, seconds, peakMib }: SealResult): string {
  return `${rows} submissions in the tables; sealing them took ${cpuSeconds.toFixed(1)} s of CPU, ${seconds.toFixed(1)} s in all, ${whole(peakMib)} MiB`;
}
