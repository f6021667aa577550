import { useQuery } from '@connectrpc/connect-query';
import { useState } from 'react';
import { ApiKeyService, ApiKeyStatus } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { type Usage, UsageService, UsageWindow } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { useScope } from '../scope.js';
import { Choice } from '../ui/choice.js';
import { PageHead } from '../ui/page-head.js';
import { safe } from '../ui/safe.js';
import { Segments } from '../ui/segments.js';
import { ErrorState, Loading } from '../ui/states.js';
import { Limits } from './limits.js';
import { UsageChart } from './usage-chart.js';

const WINDOWS = [
  ['day', 'By day'],
  ['hour', 'By hour'],
] as const;
const POLL_MS = 10_000;

/** What the project has used, against the limits of its keys. */
export function UsagePage() {
  const { projectId } = useScope().scope;
  const [window, setWindow] = useState<'day' | 'hour'>('day');
  const [apiKeyId, setApiKeyId] = useState('');
  const keys = useQuery(ApiKeyService.method.listApiKeys, { projectId, limit: 200 });
  const active = keys.data?.data.filter(({ status }) => status === ApiKeyStatus.ACTIVE) ?? [];
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
      {usage.data === undefined ? null : <Shown usage={usage.data} window={window} />}
      <Limits keys={apiKeyId === '' ? active : active.filter(({ id }) => id === apiKeyId)} />
    </>
  );
}

function Shown({ usage, window }: { usage: Usage; window: 'day' | 'hour' }) {
  return (
    <>
      <div className="cards">
        <Figure name="Submissions, last 24 hours" value={usage.submissionsLast24h} />
        <Figure name="Reads, last 24 hours" value={usage.readsLast24h} />
      </div>
      <UsageChart usage={usage} window={window} />
    </>
  );
}

function Figure({ name, value }: { name: string; value: bigint }) {
  return (
    <section className="card figure">
      <h2>{name}</h2>
      <strong>{value.toLocaleString()}</strong>
    </section>
  );
}
