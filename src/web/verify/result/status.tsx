import type { CheckStatus } from '../../../proof/verify/report.js';
import { STATUS_WORDS } from './step-texts.js';

/** Shapes that differ without colour: a tick, a cross, a dashed ring. */
const SHAPES: Readonly<Record<CheckStatus, string>> = {
  passed: 'M6.5 12.5l3.6 3.6 7.4-8.2',
  failed: 'M8 8l8 8M16 8l-8 8',
  not_checked: 'M9.2 9.6a2.9 2.9 0 1 1 4.2 2.6c-.9.5-1.4 1-1.4 2M12 16.6v.2',
};

/** The symbol of a status; the word has to be beside it. */
export function StatusIcon({ status, size = 24 }: { status: CheckStatus; size?: number }) {
  return (
    <svg class={`icon ${status}`} width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <circle cx="12" cy="12" r="10.5" class={status === 'not_checked' ? 'ring dashed' : 'ring'} />
      <path d={SHAPES[status]} class="stroke" />
    </svg>
  );
}

/** The word of a status, for places that have the symbol already. */
export function StatusWord({ status }: { status: CheckStatus }) {
  return <span class={`chip ${status}`}>{STATUS_WORDS[status]}</span>;
}

/** Symbol and word of a status. */
export function StatusChip({ status }: { status: CheckStatus }) {
  return (
    <span class={`chip ${status}`}>
      <StatusIcon status={status} size={16} />
      {STATUS_WORDS[status]}
    </span>
  );
}
