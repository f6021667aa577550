import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import type { ServiceEntry } from '../../http/services.js';
import type { Register } from '../../log/register/register.js';
import { createDegradationCheck } from '../../ops/degradation.js';
import { createHealthCheck } from '../../ops/health-check.js';
import { infoHandlers } from '../../public/info.js';
import type { TrustRootsReader } from '../../public/trust-roots.js';
import type { Standby } from '../standby.js';

type InfoOptions = Pick<Standby, 'standby'> & { register: Register; log: Logger };

type InfoParts = {
  pool: Pool;
  trustRoots: TrustRootsReader;
  /** Why reads come from the standby; undefined while they come from the primary. */
  awayReason: () => string | undefined;
};

/** InfoService over an open database. */
export function infoService(
  { register, log, standby }: InfoOptions,
  { pool, trustRoots, awayReason }: InfoParts,
): ServiceEntry {
  const monotonicMs = () => performance.now();
  const notStored = () => awayReason() ?? standby.reason();
  const findProblems = createHealthCheck({ pool, register, log, monotonicMs });
  const handlers = infoHandlers({
    pool,
    trustRoots,
    findDegradation: createDegradationCheck(pool, monotonicMs, notStored),
    problem: async (environment) =>
      (await findProblems()).find((problem) => problem.environment === environment)?.reason,
    clock: Date.now,
  });
  return { desc: InfoService, handlers };
}
