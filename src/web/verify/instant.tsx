const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeStyle: 'long' });

/** A time in the reader's own time zone, in UTC on hover and in print. Nothing if it is no time. */
export function Instant({ time }: { time: Date | string }) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return null;
  const utc = date.toISOString();
  return (
    <time dateTime={utc} title={`${utc} (UTC)`}>
      {FORMAT.format(date)}
      <span class="print-only"> ({utc})</span>
    </time>
  );
}
