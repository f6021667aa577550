import { toHex } from '../../../proof/bytes/encoding.js';
import type { PathStep } from '../../../proof/log/merkle.js';

const WIDTH = 360;
const NODE = { width: 92, height: 24 };
const CENTRE = WIDTH / 2;
const SIDE = 70;
/** Deep trees are drawn denser. */
const ROW = { wide: 56, dense: 40 };
const DENSE_FROM = 10;
const MARGIN = 26;

type Props = {
  leaf: Uint8Array;
  index: number;
  steps: readonly PathStep[];
  computed: Uint8Array;
  isRoot: boolean;
  label: string;
};

/** The path as a tree: root at the top, leaf at the bottom, each given sibling on its side. */
export function TreeDrawing({ leaf, index, steps, computed, isRoot, label }: Props) {
  const row = steps.length >= DENSE_FROM ? ROW.dense : ROW.wide;
  const height = steps.length * row + NODE.height + 2 * MARGIN;
  const yOf = (level: number) => height - MARGIN - NODE.height / 2 - level * row;
  return (
    <svg class="tree" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={label}>
      {steps.map((step, level) => (
        <Edges key={toHex(step.parent)} from={yOf(level)} to={yOf(level + 1)} x={xOf(step)} />
      ))}
      {steps.map((step, level) => (
        <Node key={toHex(step.parent)} hash={step.sibling} x={xOf(step)} y={yOf(level)} kind="given" />
      ))}
      {[leaf, ...steps.map(({ parent }) => parent)].map((hash, level) => {
        const isTop = level === steps.length;
        const kind = isTop ? (isRoot ? 'root' : 'root wrong') : 'computed';
        return <Node key={toHex(hash)} hash={hash} x={CENTRE} y={yOf(level)} kind={kind} />;
      })}
      <text x={CENTRE} y={height - 6} class="caption">
        entry {index.toLocaleString()}
      </text>
      <text x={CENTRE} y={14} class="caption">
        {isRoot ? 'root' : `computed: ${short(computed)}`}
      </text>
    </svg>
  );
}

function xOf({ isSiblingLeft }: PathStep): number {
  return isSiblingLeft ? SIDE : WIDTH - SIDE;
}

function Edges({ from, to, x }: { from: number; to: number; x: number }) {
  const middle = (from + to) / 2;
  return (
    <>
      <path class="edge way" d={`M${CENTRE} ${from}V${to}`} />
      <path class="edge" d={`M${x} ${from}C${x} ${middle} ${CENTRE} ${middle} ${CENTRE} ${to}`} />
    </>
  );
}

function Node({ hash, x, y, kind }: { hash: Uint8Array; x: number; y: number; kind: string }) {
  return (
    <g class={`node ${kind}`}>
      <rect x={x - NODE.width / 2} y={y - NODE.height / 2} width={NODE.width} height={NODE.height} rx="6" />
      <text x={x} y={y + 4}>
        {short(hash)}
      </text>
    </g>
  );
}

function short(hash: Uint8Array): string {
  return `${toHex(hash.subarray(0, 4))}…`;
}
