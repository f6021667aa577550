import { ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectExportService } from '../../../../gen/attestation/admin/v1/exports_pb.js';
import { LogService } from '../../../../gen/attestation/admin/v1/logs_pb.js';
import { ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { SubmissionService } from '../../../../gen/attestation/admin/v1/submissions_pb.js';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { TufService } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import { UsageService } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { WitnessService } from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import type { Config } from '../../../config/config.js';
import { SCOPES } from '../../../protocol/scopes.js';
import { apiKeyHandlers } from '../../admin/api-keys.js';
import { auditHandlers } from '../../admin/audit.js';
import { projectHandlers } from '../../admin/projects.js';
import { trustRuleHandlers } from '../../admin/trust/trust-rules.js';
import { usageHandlers } from '../../admin/usage.js';
import { submissionHandlers } from '../../attestations/statements/erase-statement.js';
import { createRandomSource } from '../../core/random.js';
import type { Pool } from '../../database/connect.js';
import { projectExportHandlers } from '../../exports/rpc/admin-exports.js';
import type { ServiceEntry } from '../../http/services.js';
import { openIdempotency } from '../../idempotency/idempotency.js';
import type { SendJob } from '../../jobs/send-after.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import type { TufKey } from '../../keys/tuf-keys.js';
import { logHandlers } from '../../log/admin-logs.js';
import type { TrustRootsReader } from '../../public/trust-roots.js';
import { tufHandlers } from '../../public/tuf/admin-tuf.js';
import type { Cursors } from '../../rpc/cursor.js';
import { witnessHandlers } from '../../witnessing/rpc/admin-witnesses.js';
import { newSecret } from '../first-keys.js';
import type { Dashboard } from './dashboard.js';
import { issuerUrlProblem } from './token-service.js';

/** The dependencies of the admin API. */
type AdminDeps = {
  config: Config;
  pool: Pool;
  cursors: Cursors;
  /** Tells every process of a changed key or trust rule. */
  onKeyChange: (id: string) => void;
  send: SendJob;
  dashboard: Dashboard | undefined;
  trustRoots: TrustRootsReader;
  tufKeys: readonly TufKey[];
};

/** The services of the admin API, with those of the dashboard if there is one; none without an admin token and identity provider. */
export function adminServices({
  config,
  pool,
  cursors,
  onKeyChange,
  send,
  dashboard,
  trustRoots,
  tufKeys,
}: AdminDeps): ServiceEntry[] {
  const { adminToken, secretKeys } = config.secrets;
  if (adminToken === undefined && config.oidc === undefined) return [];
  const apiKeys = deriveKeyRing(secretKeys, 'api-key');
  const idempotency = openIdempotency(config, pool);
  const shared = { pool, idempotency, cursors, clock: Date.now, random: createRandomSource() };
  const keys = apiKeyHandlers({
    ...shared,
    scopes: SCOPES,
    createSecret: (environment) => newSecret(apiKeys, environment),
    onKeyChange,
  });
  return [
    { desc: ProjectService, handlers: projectHandlers(shared) },
    { desc: ApiKeyService, handlers: keys },
    {
      desc: TrustRuleService,
      handlers: trustRuleHandlers({
        ...shared,
        scopes: SCOPES,
        findUrlProblem: issuerUrlProblem(config),
        onKeyChange,
      }),
    },
    { desc: UsageService, handlers: usageHandlers(shared) },
    { desc: AuditService, handlers: auditHandlers(shared) },
    { desc: ProjectExportService, handlers: projectExportHandlers(shared) },
    { desc: LogService, handlers: logHandlers(shared) },
    { desc: WitnessService, handlers: witnessHandlers(shared) },
    { desc: TufService, handlers: tufHandlers({ ...shared, trustRoots, tufKeys }) },
    { desc: SubmissionService, handlers: submissionHandlers({ ...shared, send }) },
    ...(dashboard?.services ?? []),
  ];
}
