import { useId, useMemo, useState } from 'preact/hooks';
import { Chart, type Series } from '../ui/chart.js';
import { Segments } from '../ui/segments.js';

/** Use by window, oldest first: seconds since the epoch, and how much. `limit` is that of one window. */
type Props = {
  what: 'Submissions' | 'Reads';
  window: 'day' | 'hour';
  times: number[];
  used: number[];
  limit: number;
  /** Whose limit it is. */
  owner: string;
};

const SCALES = [
  ['use', 'Fit use'],
  ['limit', 'Fit limit'],
] as const;
type Scale = (typeof SCALES)[number][0];
/** Below this share of the limit, bars that fit it are too small to see. */
const SMALL = 0.05;
const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const LEAST = 0.001;

/** Use by window as bars, with the limit as a line across: in view at once if use comes near it. */
export function LimitChart({ what, window, times, used, limit, owner }: Props) {
  const id = useId();
  const most = Math.max(0, ...used);
  const [chosen, setChosen] = useState<Scale>();
  const scale = chosen ?? (limit > 0 && most < limit * SMALL ? 'use' : 'limit');
  const series = useMemo(
    () => seriesOf(what, used, scale === 'limit' && limit > 0 ? limit : undefined),
    [what, used, scale, limit],
  );
  const busiest = `Most in one ${window}: ${most.toLocaleString()}`;
  const facts =
    limit === 0
      ? `${busiest}.`
      : `Limit: ${limit.toLocaleString()} a ${window}, ${owner}. ${busiest}, ${shareText(most / limit)}.`;
  return (
    <section class="card" aria-labelledby={id}>
      <div class="head">
        <h2 id={id}>
          {what} by {window}
        </h2>
        <Segments
          label={`Scale of ${what.toLowerCase()}`}
          options={SCALES}
          value={scale}
          onChange={setChosen}
        />
      </div>
      <Chart
        label={`${what} by ${window}. ${facts} The table below has the figures.`}
        times={times}
        series={series}
      />
      <p class="hint">{facts}</p>
    </section>
  );
}

function seriesOf(name: string, values: number[], limit: number | undefined): Series[] {
  const bars: Series = { name, as: 'bars', colour: '--accent', values };
  if (limit === undefined) return [bars];
  return [bars, { name: 'Limit', as: 'dashes', colour: '--bad', values: values.map(() => limit) }];
}

function shareText(share: number): string {
  return share > 0 && share < LEAST
    ? `less than ${PERCENT.format(LEAST)} of it`
    : `${PERCENT.format(share)} of it`;
}
