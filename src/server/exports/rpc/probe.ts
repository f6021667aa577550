import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { ExportDestination } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError, unavailable } from '../../core/errors.js';
import { type ProjectSlots, tryTakeSlot } from '../../jobs/project-slots.js';
import { DestinationError, type OpenDestination } from '../destinations/destination.js';

/** Dependencies of a probe. `slots`: those of concurrent probes. */
export type ProbeDeps = {
  open: (target: Owner & { destination: ExportDestination }) => Promise<OpenDestination>;
  slots: ProjectSlots;
};

type Owner = { exportId: string; projectId: string };

/** The destination of an export. `read` returns it with its secrets, or throws `DestinationError`. */
type ProbeTarget = Owner & { read: () => ExportDestination };

const TIMEOUT_MS = 20_000;
const BUSY_RETRY_SECONDS = 5;

/** Writes a probe to a destination. Throws `export.invalid_destination` with the provider's reason if that fails. */
export async function probeDestination(deps: ProbeDeps, call: Call, target: ProbeTarget): Promise<void> {
  const release = tryTakeSlot(deps.slots, target.projectId);
  if (release === undefined)
    throw unavailable('the project tests too many destinations at once', BUSY_RETRY_SECONDS);
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    await openAndProbe(deps, target, AbortSignal.any([timeout, call.signal()]));
  } catch (error) {
    if (timeout.aborted) throw invalid(`the destination did not answer within ${TIMEOUT_MS / 1000} s`);
    if (error instanceof DestinationError) throw invalid(error.message);
    throw error;
  } finally {
    release();
  }
}

async function openAndProbe(
  { open }: ProbeDeps,
  { read, ...owner }: ProbeTarget,
  signal: AbortSignal,
): Promise<void> {
  const destination = await open({ ...owner, destination: read() });
  try {
    await destination.probe(signal);
  } finally {
    await destination.close();
  }
}

function invalid(reason: string): ApiError {
  return new ApiError(ErrorCode.EXPORT_INVALID_DESTINATION, reason);
}
