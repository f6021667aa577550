import { join } from 'node:path';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Options } from '../options.js';
import { benchScript, runNode, startNode } from '../process.js';
import { measureInTurns, type Summary } from '../rounds.js';
import type { Services } from '../services.js';
import { runSeal } from '../stages/seal.js';
import type { AuditResult } from './audit-process.js';

/** Rates are leaves per second of the auditor's processor time; `seconds` is the shortest audit by the clock. */
export type AuditMeasurement = {
  leaves: number;
  summaries: Summary[];
  seconds: number;
  peakMib: number | undefined;
};

/** An audit of a log that a process of its own serves from memory, beside the hashing of its tree alone. */
export async function measureAudit({ dir }: Services, options: Options): Promise<AuditMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const log = await startNode([benchScript('log/audit-log'), join(dir, 'audited'), String(options.rows)]);
    hooks.add(log.stop);
    const leaves = options.rows;
    let seconds = Number.POSITIVE_INFINITY;
    let peakMib: number | undefined;
    const audit = async () => {
      const script = benchScript('log/audit-process');
      const result = await runNode<AuditResult>([script, log.ready, String(leaves)]);
      seconds = Math.min(seconds, result.seconds);
      peakMib = Math.max(peakMib ?? 0, result.peakMib ?? 0) || undefined;
      return sampleOf(result);
    };
    const summaries = await measureInTurns(
      [
        { name: 'hashing the tree alone', run: async () => sampleOf(await runSeal({ hash: leaves })) },
        { name: 'attest audit', run: audit },
      ],
      { ...options, warmUpSeconds: 0 },
    );
    return { leaves, summaries, seconds, peakMib };
  });
}

function sampleOf({ leaves, cpuSeconds }: { leaves: number; cpuSeconds: number }) {
  return { perSecond: leaves / cpuSeconds, cpuMicros: (cpuSeconds / leaves) * 1e6 };
}
