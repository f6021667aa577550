import { SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { SubmissionQuery } from '../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../src/server/attestations/lists/submission-lists.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { listLogs } from '../../../src/server/log/store/logs.js';
import { openPlanner, type Plan } from '../../support/judging/plans.js';
import { RARE_SCHEMA } from '../prefill.js';
import { openPool, type Services } from '../services.js';

/** A list that is asked for, as SQL and over REST. */
export type ListCase = { name: string; query: SubmissionQuery; path: string };

type Filter = Partial<Pick<SubmissionQuery, 'schema' | 'status' | 'submittedAfter' | 'submittedBefore'>>;

const LIMIT = 50;

/** Lists by the filters that could cost more than a page; everything is witnessed, the rare schema one in 100,000. */
export async function listCases({ databaseUrl, projectId }: Services): Promise<ListCase[]> {
  return withShutdownHooks(async (hooks) => {
    const pool = openPool(databaseUrl, hooks);
    const logIds = (await listLogs(pool))
      .filter(({ environment }) => environment === Environment.LIVE)
      .map(({ id }) => id);
    const [first] = await pool<{ at: Date }[]>`
      SELECT submitted_at AS at FROM submission WHERE log_id = ANY(${logIds}) AND log_index = 5000`;
    const early = first?.at ?? new Date();
    const filters: Record<string, Filter> = {
      'no filter': {},
      'status=witnessed': { status: SubmissionStatus.WITNESSED },
      'status=queued (none)': { status: SubmissionStatus.QUEUED },
      'status=failed (none)': { status: SubmissionStatus.FAILED },
      'a rare schema': { schema: RARE_SCHEMA },
      'a schema nobody uses': { schema: 'unused' },
      'before an early time': { submittedBefore: early },
      'one early second': { submittedAfter: early, submittedBefore: new Date(early.getTime() + 1_000) },
      'all together': { schema: 'purl', status: SubmissionStatus.WITNESSED, submittedBefore: early },
    };
    return Object.entries(filters).map(([name, filter]) => ({
      name,
      query: {
        projectId,
        logIds,
        schema: undefined,
        status: undefined,
        submittedAfter: undefined,
        submittedBefore: undefined,
        ...filter,
        before: undefined,
        limit: LIMIT + 1,
      },
      path: `/v1/attestations?${new URLSearchParams(parametersOf(filter))}`,
    }));
  });
}

function parametersOf({ schema, status, submittedAfter, submittedBefore }: Filter): Record<string, string> {
  return {
    limit: String(LIMIT),
    ...(schema === undefined ? {} : { schema }),
    ...(status === undefined ? {} : { status: (SubmissionStatus[status] ?? '').toLowerCase() }),
    ...(submittedAfter === undefined ? {} : { submitted_after: submittedAfter.toISOString() }),
    ...(submittedBefore === undefined ? {} : { submitted_before: submittedBefore.toISOString() }),
  };
}

/** What Postgres does for each list, once planned for its parameters and once for any. */
export type ListPlan = Plan & { name: string; planFor: 'these' | 'any' };

export async function explainLists(services: Services): Promise<ListPlan[]> {
  const planner = openPlanner(services.databaseUrl);
  const plans: ListPlan[] = [];
  for (const { name, query } of await listCases(services)) {
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(() => listSubmissions(planner.sql, query), planFor);
      plans.push({ name, planFor, ...plan });
    }
  }
  await planner.close();
  return plans;
}
