/** The audit log as tests read it. */
import { type AuditRow, listAuditEntries } from '../../../src/server/admin/store/audit.js';
import type { App } from '../../support/app.js';

/** Every entry about a resource, newest first. */
export function auditOf({ pool }: Pick<App, 'pool'>, resourceId: string): Promise<AuditRow[]> {
  return listAuditEntries(pool, {
    projectId: undefined,
    action: undefined,
    resourceId,
    after: undefined,
    before: undefined,
    belowId: undefined,
    limit: 100,
  });
}
