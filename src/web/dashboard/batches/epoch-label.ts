import type { Log } from '../../../../gen/attestation/admin/v1/logs_pb.js';

/** What an epoch is called among the logs of its environment. */
export function epochLabel({ lane, epoch }: Pick<Log, 'lane' | 'epoch'>, logs: readonly Log[]): string {
  return logs.some((log) => log.lane > 1) ? `Log ${lane}, epoch ${epoch}` : `Epoch ${epoch}`;
}
