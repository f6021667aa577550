import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { type Tuf, TufSchema, type TufService } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { type AuditIds, recordAction } from '../../admin/audit-log.js';
import type { Handlers } from '../../core/call.js';
import { ApiError, unavailable } from '../../core/errors.js';
import type { Pool } from '../../database/connect.js';
import { readDatabaseMs } from '../../database/session.js';
import { invalidRequest } from '../../json/problems.js';
import { SigningError } from '../../keys/signing-error.js';
import type { TufKey } from '../../keys/tuf-keys.js';
import type { TrustRootsReader } from '../trust-roots.js';
import { keyIdsOf, metadataText } from './metadata.js';
import { PublicationError, publishTuf, TufConflict } from './publish.js';
import { expiryOf, readTufStatus, TUF_ROLES } from './status.js';
import { currentTargets } from './targets.js';

type TufDeps = AuditIds & {
  pool: Pool;
  trustRoots: Pick<TrustRootsReader, 'readSigstore'>;
  tufKeys: readonly TufKey[];
};

const RETRY_SECONDS = 5;

/** The handlers of TufService. */
export function tufHandlers(deps: TufDeps): Handlers<typeof TufService> {
  return {
    getTuf: () => readTuf(deps),
    publishTuf: async ({ root, targets, files }, call) => {
      const publication = { root: root === '' ? undefined : root, targets, files };
      try {
        await deps.pool.begin(async (tx) => {
          const { root, targets } = await publishTuf(tx, deps.tufKeys, publication);
          const versions = { root: root.signed.version, targets: targets.signed.version };
          await recordAction(deps, tx, call, {
            action: AuditAction.TUF_PUBLISHED,
            resourceId: 'tuf',
            detail: versions,
          });
        });
      } catch (error) {
        throw asApiError(error);
      }
      return readTuf(deps);
    },
  };
}

function asApiError(error: unknown): unknown {
  if (error instanceof PublicationError)
    return invalidRequest([{ path: `/${error.part}`, message: error.message }]);
  if (error instanceof TufConflict) return new ApiError(ErrorCode.TUF_CONFLICT, error.message);
  return error instanceof SigningError ? unavailable(error.message, RETRY_SECONDS, error) : error;
}

async function readTuf({ pool, trustRoots, tufKeys }: TufDeps): Promise<Tuf> {
  const current = await currentTargets(trustRoots);
  const { newest, published, remarks } = await readTufStatus(pool, current, await readDatabaseMs(pool));
  return create(TufSchema, {
    ...(newest && {
      root: metadataText(newest.root),
      roles: TUF_ROLES.map((role) => ({
        name: role,
        version: BigInt(newest[role].signed.version),
        expiresAt: timestampFromDate(expiryOf(newest[role])),
        keyIds: [...keyIdsOf(newest.root, role)],
      })),
    }),
    published: [...published],
    current,
    onlineKeys: tufKeys.map(({ publicKey }) => toHex(publicKey)),
    remarks: [...remarks],
  });
}
