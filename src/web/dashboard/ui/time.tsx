import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';

const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time in the reader's zone, with UTC on hover; a dash without one. */
export function Time({ at, none = '–' }: { at: Timestamp | undefined; none?: string }) {
  if (at === undefined) return <span>{none}</span>;
  const date = timestampDate(at);
  const utc = date.toISOString();
  return (
    <time dateTime={utc} title={`${utc.replace('T', ' ').replace('Z', '')} UTC`}>
      {FORMAT.format(date)}
    </time>
  );
}
