import { useInfiniteQuery, useQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import {
  type ApiKey,
  ApiKeyService,
  ApiKeyStatus,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { type Usage, UsageService, UsageWindow } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { useScope } from '../scope.js';
import { Choice } from '../ui/choice.js';
import { PageHead } from '../ui/page-head.js';
import { safe } from '../ui/safe.js';
import { Segments } from '../ui/segments.js';
import { ErrorState, Loading } from '../ui/states.js';
import { useEveryRow } from '../use-every-row.js';
import { Limits } from './limits.js';
import { UsageChart, type WindowLimits } from './usage-chart.js';

const WINDOWS = [
  ['day', 'By day'],
  ['hour', 'By hour'],
] as const;
type Window = (typeof WINDOWS)[number][0];
const SECONDS = { day: 86_400, hour: 3_600 } as const;
const POLL_MS = 10_000;

/** What the project has used, against the limits of its keys. */
export function UsagePage() {
  const { projectId } = useScope().scope;
  const [window, setWindow] = useState<Window>('day');
  const [apiKeyId, setApiKeyId] = useState('');
  const keys = useInfiniteQuery(
    ApiKeyService.method.listApiKeys,
    { projectId, limit: 200, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  const active = useEveryRow(keys).filter(({ status }) => status === ApiKeyStatus.ACTIVE);
  const chosen = apiKeyId === '' ? active : active.filter(({ id }) => id === apiKeyId);
  const owner = apiKeyId === '' ? { projectId } : { apiKeyId };
  const asked = { ...owner, window: window === 'day' ? UsageWindow.DAY : UsageWindow.HOUR };
  const usage = useQuery(UsageService.method.getUsage, asked, { refetchInterval: POLL_MS });
  const options = [['', 'All keys'] as const, ...active.map(({ id, name }) => [id, safe(name)] as const)];
  return (
    <>
      <PageHead
        title="Usage and limits"
        hint="Days are kept for 90 days, hours for 8. Times of windows are UTC."
      >
        <Choice label="API key" isLabelHidden options={options} value={apiKeyId} onChange={setApiKeyId} />
        <Segments label="Windows" options={WINDOWS} value={window} onChange={setWindow} />
      </PageHead>
      {usage.isPending ? <Loading what="usage" /> : null}
      {usage.error === null ? null : <ErrorState error={usage.error} onRetry={usage.refetch} />}
      {usage.data === undefined ? null : (
        <Shown usage={usage.data} window={window} limits={limitsOf(chosen, window)} />
      )}
      <Limits keys={chosen} />
    </>
  );
}

function Shown({ usage, window, limits }: { usage: Usage; window: Window; limits: WindowLimits }) {
  return (
    <>
      <div class="cards">
        <Figure name="Submissions, last 24 hours" value={usage.submissionsLast24h} />
        <Figure name="Reads, last 24 hours" value={usage.readsLast24h} />
      </div>
      <UsageChart usage={usage} window={window} limits={limits} />
    </>
  );
}

function Figure({ name, value }: { name: string; value: bigint }) {
  return (
    <section class="card figure">
      <h2>{name}</h2>
      <strong>{value.toLocaleString()}</strong>
    </section>
  );
}

/** The limits of a window of the keys together. Reads are limited by the second. */
function limitsOf(keys: readonly ApiKey[], window: Window): WindowLimits {
  const sum = (pick: (limits: NonNullable<ApiKey['limits']>) => bigint | undefined) =>
    keys.reduce((total, { limits }) => total + Number((limits && pick(limits)) ?? 0n), 0);
  return {
    submissions: sum((limits) => (window === 'day' ? limits.submissionsPerDay : limits.submissionsPerHour)),
    reads: sum(({ readsPerSecond }) => readsPerSecond) * SECONDS[window],
    owner: keys.length === 1 ? 'of one key' : `of ${keys.length} keys together`,
  };
}
