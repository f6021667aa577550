/** The states of an OpenTimestamps witness's calendars for one request: shown in batches, and read by polls. */
import type { JsonObject } from '@bufbuild/protobuf';

/** `pending`: the calendar has accepted the request. `reason` is one line: its failure, or why it is still pending. */
export type CalendarState = {
  readonly url: string;
  readonly status: 'pending' | 'failed';
  readonly reason?: string;
};

/** The result of a call of a calendar. */
export type CalendarOutcome<T> =
  | { readonly url: string; readonly value: T }
  | { readonly url: string; readonly failure: string };

/** Calls calendars at the same time. A failure is one line, without credentials. */
export async function callCalendars<C extends { readonly url: string }, T>(
  calls: readonly C[],
  call: (wanted: C) => Promise<T>,
): Promise<CalendarOutcome<T>[]> {
  return Promise.all(
    calls.map(async (wanted) => {
      const { url } = wanted;
      try {
        return { url, value: await call(wanted) };
      } catch (error) {
        return { url, failure: error instanceof Error ? error.message : String(error) };
      }
    }),
  );
}

/** Joins failures to one line: `https://a.example: HTTP 503 · https://b.example: …`. */
export function failuresText(outcomes: readonly CalendarOutcome<unknown>[]): string {
  return outcomes
    .flatMap((outcome) => ('failure' in outcome ? [`${outcome.url}: ${outcome.failure}`] : []))
    .join(' · ');
}

/** The detail of a pending request. */
export function pendingDetail(calendars: readonly CalendarState[]): JsonObject {
  return { status: 'pending', calendars: calendars.map((calendar) => ({ ...calendar })) };
}

/** The calendars that have accepted a request, from its detail. */
export function acceptedCalendars({ calendars }: JsonObject): string[] {
  if (!Array.isArray(calendars)) return [];
  return calendars.flatMap((calendar) => {
    if (typeof calendar !== 'object' || calendar === null || Array.isArray(calendar)) return [];
    return calendar.status === 'pending' && typeof calendar.url === 'string' ? [calendar.url] : [];
  });
}
