import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ApiKeyChange, ApiKeyLimits } from '../../store/projects/api-keys.js';

/** What an audit entry says of a key's new name, scopes and expiry; undefined when none of them is new. */
export function rightsDetail(from: ApiKeyChange, to: ApiKeyChange): JsonObject | undefined {
  return changes({
    name: [from.name, to.name],
    scopes: [from.scopes, to.scopes],
    expires_at: [from.expiresAt?.toISOString() ?? null, to.expiresAt?.toISOString() ?? null],
  });
}

/** What an audit entry says of a key's new limits; undefined when none is new. */
export function limitsDetail(from: ApiKeyLimits, to: ApiKeyLimits): JsonObject | undefined {
  return changes({
    submissions_per_second: [from.submissionsPerSecond, to.submissionsPerSecond],
    submissions_per_hour: [from.submissionsPerHour, to.submissionsPerHour],
    submissions_per_day: [from.submissionsPerDay, to.submissionsPerDay],
    reads_per_second: [from.readsPerSecond, to.readsPerSecond],
  });
}

function changes(members: Record<string, [from: JsonValue, to: JsonValue]>): JsonObject | undefined {
  const changed = Object.entries(members).filter(
    ([, [from, to]]) => JSON.stringify(from) !== JSON.stringify(to),
  );
  if (changed.length === 0) return undefined;
  return Object.fromEntries(changed.map(([name, [from, to]]) => [name, { from, to }]));
}
