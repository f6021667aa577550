import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { useQuery } from '@connectrpc/connect-query';
import type { ApiKey } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { UsageService, UsageWindow } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';

const SHOWN = 12;
const NEAR = 0.9;

/** The present day and hour of each key against its limits. */
export function Limits({ keys }: { keys: ApiKey[] }) {
  if (keys.length === 0) return <Empty title="No API key works now">Limits are those of API keys.</Empty>;
  return (
    <section class="stack" aria-labelledby="limits">
      <h2 id="limits">Limits</h2>
      <div class="cards">
        {keys.slice(0, SHOWN).map((key) => (
          <KeyLimits key={key.id} apiKey={key} />
        ))}
      </div>
      {keys.length > SHOWN ? <p class="hint">Choose a key above to see the limits of others.</p> : null}
    </section>
  );
}

function startOf(ms: number): number {
  return Math.floor(Date.now() / ms) * ms;
}

function useUsed(apiKeyId: string, window: UsageWindow, ms: number): number {
  const start = timestampFromMs(startOf(ms));
  const { data } = useQuery(UsageService.method.getUsage, { apiKeyId, window, start });
  return Number(data?.submissions ?? 0n);
}

function KeyLimits({ apiKey: { id, name, limits } }: { apiKey: ApiKey }) {
  const inHour = useUsed(id, UsageWindow.HOUR, 3_600_000);
  const inDay = useUsed(id, UsageWindow.DAY, 86_400_000);
  return (
    <section class="card">
      <h3>{safe(name)}</h3>
      <Bar name="Submissions this hour" used={inHour} limit={Number(limits?.submissionsPerHour ?? 0n)} />
      <Bar name="Submissions this UTC day" used={inDay} limit={Number(limits?.submissionsPerDay ?? 0n)} />
      <p class="hint">
        {limits?.submissionsPerSecond?.toLocaleString()} submissions and{' '}
        {limits?.readsPerSecond?.toLocaleString()} reads a second
      </p>
    </section>
  );
}

function Bar({ name, used, limit }: { name: string; used: number; limit: number }) {
  const share = limit === 0 ? 1 : Math.min(1, used / limit);
  const says = `${used.toLocaleString()} of ${limit.toLocaleString()}`;
  return (
    <label class="meter">
      <span class="head">
        <span>{name}</span>
        <span class="hint">{says}</span>
      </span>
      <meter value={share} high={NEAR} optimum={0} aria-valuetext={says} />
    </label>
  );
}
