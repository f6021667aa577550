import 'uplot/dist/uPlot.min.css';
import { useSyncExternalStore } from 'preact/compat';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { hoverBox } from './chart-hover.js';

/** A line of a chart: its name, a value for each time, and how it is drawn; a line if nothing is said. */
export type Series = {
  name: string;
  values: (number | null)[];
  as?: 'bars' | 'steps' | 'dashes';
  colour: '--accent' | '--muted' | '--bad';
};

type Props = {
  /** What the chart says, for those who do not see it; a table says it in full. */
  label: string;
  /** Seconds since the epoch, ascending. */
  times: number[];
  series: Series[];
};

const HEIGHT = 240;
const DARK = matchMedia('(prefers-color-scheme: dark)');
const MINUTE = 60;
const DAY = 86_400;
const DATE = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const SECOND = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
/** Short enough for an axis: 12,000 is 12K. */
const NUMBER = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 4 });
/** Steps of an axis of whole things. */
const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
);

/** A chart over time, in the colours of the page: a canvas keeps those that it was drawn in. */
export function Chart({ label, times, series }: Props) {
  const isDark = useSyncExternalStore(onSchemeChange, () => DARK.matches);
  return (
    <div class="chart" role="img" aria-label={label}>
      <Plot key={String(isDark)} times={times} series={series} />
    </div>
  );
}

function onSchemeChange(changed: () => void): () => void {
  DARK.addEventListener('change', changed);
  return () => DARK.removeEventListener('change', changed);
}

function Plot({ times, series }: Omit<Props, 'label'>) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const plot = draw(element, times, series);
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [times, series]);
  return <div ref={box} aria-hidden="true" />;
}

function draw(element: HTMLElement, times: number[], series: Series[]): uPlot {
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: HEIGHT,
    axes: axesOf(element),
    series: [{}, ...series.map((one) => lineOf(element, one))],
    scales: {
      x: { range: (_plot, min, max) => padded(times, series, min, max) },
      y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] },
    },
    legend: { show: series.length > 1, live: false },
    cursor: { drag: { setScale: false } },
    plugins: [hoverBox(series.map(({ name }) => name))],
  };
  return new uPlot(options, [times, ...series.map(({ values }) => values)], element);
}

/** Room for half a bar at either end. */
function padded(
  [first = 0, second = first]: number[],
  series: Series[],
  min: number,
  max: number,
): [number, number] {
  const room = series.some((one) => one.as === 'bars') ? (second - first) / 2 : 0;
  return min === max ? [min - 1, max + 1] : [min - room, max + room];
}

function axesOf(element: HTMLElement): uPlot.Axis[] {
  const line = { stroke: colourOf(element, '--line'), width: 1 };
  const axis = { stroke: colourOf(element, '--muted'), grid: line, ticks: line };
  const values: uPlot.Axis.DynamicValues = (_plot, splits, _index, _space, step) => {
    const format = step >= DAY ? DATE : step >= MINUTE ? TIME : SECOND;
    return splits.map((second) => format.format(second * 1000));
  };
  return [
    { ...axis, values, space: 72 },
    {
      ...axis,
      size: 64,
      incrs: WHOLE,
      values: (_plot, splits) => splits.map((value) => NUMBER.format(value)),
    },
  ];
}

function lineOf(element: HTMLElement, { name, as, colour }: Series): uPlot.Series {
  const stroke = colourOf(element, colour);
  const { bars, stepped } = uPlot.paths;
  if (as === 'bars' && bars !== undefined) {
    const paths = bars({ size: [0.7, 48] });
    return { label: name, stroke, fill: stroke, width: 0, points: { show: false }, paths };
  }
  const line = { label: name, stroke, width: 2 };
  if (as === 'dashes') return { ...line, dash: [8, 6], points: { show: false } };
  // A size holds until the next one.
  return as === 'steps' && stepped !== undefined ? { ...line, paths: stepped({ align: 1 }) } : line;
}

/** A colour of the page as canvas understands it: without `light-dark()`. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
