/** The process of `attest signer`. */
import type { SignerConfig } from '../../config/signer/signer-settings.js';
import { createLogger, flushLogger } from '../core/logger.js';
import { createOutageLogs } from '../core/outage-log.js';
import { aborted, withShutdownHooks } from '../core/shutdown.js';
import { addBuildInfo } from '../ops/build-info.js';
import { createMetrics } from '../ops/metrics.js';
import { createOps } from '../ops/ops-listener.js';
import { addSignerMetrics } from '../ops/signer-metrics.js';
import { createAnswers } from '../signer/answer.js';
import { createSignerListener } from '../signer/listener.js';
import { openLogHistory } from '../signer/log-history.js';
import { assertOpened, openKeys } from '../signer/open-keys.js';
import type { RunOptions } from './run.js';

/** Signs for the service until `stop` aborts. Needs neither database nor queue. */
export async function runSigner(config: SignerConfig, { stop, onReady }: RunOptions): Promise<void> {
  await withShutdownHooks(async (hooks) => {
    const log = createLogger({ level: config.logLevel, fd: 2 });
    hooks.add(() => flushLogger(log));
    const keys = assertOpened(await openKeys(config, hooks));
    const history = await openLogHistory(config.historyDir);
    const metrics = createMetrics();
    addBuildInfo(metrics);
    const { observe, findFailing } = addSignerMetrics(
      metrics,
      keys.map(({ config: { name } }) => name),
    );
    const check = async () => findFailing();
    const ops = createOps({ checks: [{ name: 'keys', check }], metrics, log });
    hooks.add(ops.close);
    const { port } = await ops.listen({ host: config.opsHost, port: config.opsPort });
    const outages = createOutageLogs(log, () => performance.now());
    const answer = createAnswers({ keys, history, log, outages, observe });
    const listener = createSignerListener({ answer, log });
    hooks.add(listener.close);
    await listener.listen(config);
    for (const { config: key, algorithm } of keys)
      log.info(
        { key: key.name, backend: key.backend.name, purpose: key.purpose, algorithm },
        'the key signs',
      );
    onReady({ opsUrl: `http://localhost:${port}` });
    await aborted(stop);
  });
}
