import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';

/** A time in UTC, as `2026-01-02T03:04:05.678Z`; a dash if there is none. */
export function timeText(at: Timestamp | undefined): string {
  return at === undefined ? '-' : timestampDate(at).toISOString();
}
