// Measures the service, each figure beside its own limit in the same run. `--help` says what can be chosen.
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { createShutdownHooks, type ShutdownHooks } from '../../src/server/core/shutdown.js';
import { measureFilesEntered } from './files-entered.js';
import { fillService } from './fill.js';
import { measureHostile } from './hostile.js';
import { explainLists } from './lists.js';
import { openLoadGenerator } from './load.js';
import { HELP, type Options, readOptions } from './options.js';
import { stopAll } from './process.js';
import {
  describeMachine,
  filesLines,
  filledLine,
  hostileLines,
  machineLine,
  planLines,
  type Report,
  requestLines,
  sealLines,
  webhooksLines,
  witnessedLines,
} from './report.js';
import { measureCreate, measureRead } from './requests.js';
import { measureSeal } from './seal.js';
import { startServices } from './services.js';
import { measureWebhooks } from './webhooks.js';
import { measureWitnessed } from './witnessed.js';

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
  const services = await startServices(hooks);
  const deps = { services, generator, options };
  const filled = await fillService(services, options.rows);
  console.log(filledLine(options.rows, filled));
  const report: Report = { machine, rows: options.rows, filled, requests: [] };
  for (const name of options.only) {
    if (name === 'seal') {
      report.seal = await measureSeal(services, options);
      console.log(sealLines(report.seal));
    } else if (name === 'plans') {
      report.plans = await explainLists(services);
      console.log(planLines(report.plans));
    } else if (name === 'webhooks') {
      report.webhooks = await measureWebhooks(services, options);
      console.log(webhooksLines(report.webhooks));
    } else if (name === 'hostile') {
      report.hostile = await measureHostile(services, options);
      console.log(hostileLines(report.hostile));
    } else if (name === 'files') {
      report.files = await measureFilesEntered(services, options);
      console.log(filesLines(report.files));
    } else if (name === 'witnessed') {
      report.witnessed = await measureWitnessed(services, options);
      console.log(witnessedLines(report.witnessed));
    } else {
      const measured = name === 'create' ? await measureCreate(deps) : await measureRead(deps, name);
      report.requests.push(measured);
      console.log(requestLines(measured));
    }
  }
  const json = JSON.stringify(report, null, 2);
  if (options.jsonFile !== undefined) await writeFile(options.jsonFile, `${json}\n`);
  else console.log(`\n${json}`);
}
