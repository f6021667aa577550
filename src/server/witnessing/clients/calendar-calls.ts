/** Calls of all calendars of a witness. Only configured calendars are contacted, never one that an answer names. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { encodeOts } from '../../../proof/opentimestamps/detached-file.js';
import { attestationsOf, graftTimestamp, type Timestamp } from '../../../proof/opentimestamps/timestamp.js';
import type { RequestDeps } from './bounded-request.js';
import { fetchUpgrade, submitDigest } from './calendar.js';
import { type CalendarOutcome, callCalendars } from './calendar-states.js';

/** Calendars that may be contacted: addresses without a slash at the end. `timeoutMs` is for each request. */
export type CalendarsConfig = { readonly calendars: readonly string[]; readonly timeoutMs: number };

/** A calendar's timestamp of a commitment, or that it is pending. */
export type Upgrade = Awaited<ReturnType<typeof fetchUpgrade>>;

/** Calendars' commitments have 44 bytes. */
const MAX_COMMITMENT_BYTES = 128;
const MAX_UPGRADES = 64;

/** Submits a digest to some of the calendars at the same time. An answer that no configured calendar continues is a failure. */
export function submitTo(
  deps: RequestDeps,
  { calendars, timeoutMs }: CalendarsConfig,
  urls: readonly string[],
  digest: Uint8Array,
  signal: AbortSignal,
): Promise<CalendarOutcome<Timestamp>[]> {
  const calls = urls.map((url) => ({ url }));
  return callCalendars(calls, async ({ url }) => {
    const timestamp = await submitDigest(deps, { url, timeoutMs }, digest, signal);
    checkContinuable(timestamp, calendars);
    return timestamp;
  });
}

/** Throws if nothing in an answer can be continued at a configured calendar. */
function checkContinuable(timestamp: Timestamp, calendars: readonly string[]): void {
  const attestations = attestationsOf(timestamp).map(({ attestation }) => attestation);
  const uris = attestations.flatMap((one) => (one.kind === 'pending' ? [one.uri] : []));
  const isAttested = attestations.some(({ kind }) => kind === 'bitcoin');
  if (isAttested || uris.some((uri) => calendars.includes(normalUrl(uri)))) return;
  const [first] = uris;
  throw new Error(
    first === undefined
      ? 'the answer names no calendar'
      : `it continues at ${first.slice(0, 100)}, which is not among the calendars of this witness`,
  );
}

/** Fetches the configured calendars' upgrades of the timestamp's pending attestations, at the same time. */
export function fetchUpgrades(
  deps: RequestDeps,
  { calendars, timeoutMs }: CalendarsConfig,
  timestamp: Timestamp,
  signal: AbortSignal,
): Promise<CalendarOutcome<Upgrade>[]> {
  const pending = attestationsOf(timestamp).flatMap(({ message, attestation }) => {
    const url = attestation.kind === 'pending' ? normalUrl(attestation.uri) : '';
    const isOurs = calendars.includes(url) && message.length <= MAX_COMMITMENT_BYTES;
    return isOurs ? [{ url, commitment: message }] : [];
  });
  return callCalendars(pending.slice(0, MAX_UPGRADES), ({ url, commitment }) =>
    fetchUpgrade(deps, { url, timeoutMs }, commitment, signal),
  );
}

/** Merges answers into a timestamp. One that would make it too large becomes a failure. */
export function addAnswers<T extends Upgrade>(
  timestamp: Timestamp,
  outcomes: readonly CalendarOutcome<T>[],
): { timestamp: Timestamp; outcomes: CalendarOutcome<T>[] } {
  let grown = timestamp;
  const added = outcomes.map((outcome): CalendarOutcome<T> => {
    if ('failure' in outcome || 'isPending' in outcome.value) return outcome;
    try {
      const next = graftTimestamp(grown, outcome.value);
      encodeOts(next);
      grown = next;
      return outcome;
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      return { url: outcome.url, failure: `the answer cannot be added: ${error.message}` };
    }
  });
  return { timestamp: grown, outcomes: added };
}

function normalUrl(uri: string): string {
  return uri.replace(/\/+$/, '');
}
