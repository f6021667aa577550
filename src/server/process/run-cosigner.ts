/** The process of `attest witness`. */
import type { CosignerConfig } from '../../config/cosigner-settings.js';
import { originHash } from '../../proof/log/add-checkpoint.js';
import type { NoteKey } from '../../proof/log/note.js';
import { createLogger, flushLogger, type Logger } from '../core/logger.js';
import { aborted, withShutdownHooks } from '../core/shutdown.js';
import { createCosigner, type KnownLog } from '../cosigner/cosigner.js';
import { type CosignerServer, createCosignerServer } from '../cosigner/cosigner-server.js';
import { type History, openHistory } from '../cosigner/history.js';
import { addBuildInfo } from '../ops/build-info.js';
import { addCosignedSizes } from '../ops/cosigner-gauges.js';
import { createMetrics, type GaugeValue, type Metrics } from '../ops/metrics.js';
import { createOps } from '../ops/ops-listener.js';
import type { RunOptions } from './run.js';

/** Runs a witness of other logs until `stop` aborts. Needs neither database nor queue. */
export async function runCosigner(config: CosignerConfig, { stop, onReady }: RunOptions): Promise<void> {
  await withShutdownHooks(async (hooks) => {
    const log = createLogger({ level: config.logLevel, fd: 2 });
    hooks.add(() => flushLogger(log));
    const logs = knownLogs(config.logKeys);
    const history = await openHistory(config.historyDir);
    const metrics = createMetrics();
    addBuildInfo(metrics);
    addCosignedSizes(metrics, () => readSizes(logs, history));
    const readable = () => Promise.all(logs.slice(0, 1).map(({ origin }) => history.find(origin)));
    const ops = createOps({
      checks: [{ name: 'history', asks: 'the folder of histories', check: readable }],
      metrics,
      log,
    });
    hooks.add(ops.close);
    const { port: opsPort } = await ops.listen({ host: config.opsHost, port: config.opsPort });
    const server = openServer(config, { logs, history, metrics, log });
    hooks.add(server.close);
    const reload = () => reloadTls(server, log);
    process.on('SIGHUP', reload);
    hooks.add(async () => process.off('SIGHUP', reload));
    const { port } = await server.listen({ host: config.host, port: config.port });
    for (const { origin } of logs) log.info({ origin }, 'the log is witnessed');
    const baseUrl = `${config.tls ? 'https' : 'http'}://localhost:${port}`;
    onReady({ baseUrl, opsUrl: `http://localhost:${opsPort}` });
    await aborted(stop);
  });
}

type Parts = { logs: readonly KnownLog[]; history: History; metrics: Metrics; log: Logger };

function openServer(config: CosignerConfig, { logs, history, metrics, log }: Parts): CosignerServer {
  const cosigners = config.cosigners.map(({ key, sign }) => ({ ...key, sign }));
  const origins = new Map(logs.map(({ origin }) => [originHash(origin), origin]));
  const nowMs = Date.now;
  return createCosignerServer({
    addCheckpoint: createCosigner({ logs, cosigners, history, nowMs, log }),
    findNote: async (hash) => {
      const origin = origins.get(hash);
      return origin === undefined ? undefined : history.findNote(origin);
    },
    log,
    nowMs,
    observe: metrics.observeRequest,
    limits: config.openLimits,
    tls: config.tls,
  });
}

/** A log is known by its origin: the name of its keys. */
function knownLogs(keys: readonly NoteKey[]): KnownLog[] {
  const origins = [...new Set(keys.map(({ name }) => name))];
  return origins.map((origin) => ({ origin, keys: keys.filter(({ name }) => name === origin) }));
}

function readSizes(logs: readonly KnownLog[], history: History): Promise<GaugeValue> {
  const sizes = logs.map(async ({ origin }) => ({
    labels: { origin },
    value: (await history.find(origin))?.size ?? 0,
  }));
  return Promise.all(sizes);
}

function reloadTls(server: CosignerServer, log: Logger): void {
  try {
    server.reloadTls();
    log.info('certificate and key were reloaded');
  } catch (error) {
    log.error({ err: error }, 'certificate and key are invalid; keeping the old ones');
  }
}
