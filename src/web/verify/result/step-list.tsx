import type { Check, Step } from '../../../proof/verify/report.js';
import { printable } from '../../../protocol/printable.js';
import { StatusChip, StatusIcon, StatusWord } from './status.tsx';
import { areOfSet, SET_TEXTS, STEP_TEXTS } from './step-texts.js';

/** The eight steps in order. One that failed shows its checks at once. */
export function StepList({ steps }: { steps: readonly Step[] }) {
  return (
    <ol class="steps">
      {steps.map((step) => (
        <StepItem key={step.name} step={step} />
      ))}
    </ol>
  );
}

function StepItem({ step }: { step: Step }) {
  const { name, status, message, checks } = step;
  const { title, shows } = areOfSet(checks) ? SET_TEXTS : STEP_TEXTS[name];
  const open = checks.filter((check) => check.status === 'not_checked' && status !== 'not_checked');
  return (
    <li class={status} data-step={name}>
      <StatusIcon status={status} />
      <div>
        <h3>
          {title} <StatusWord status={status} />
        </h3>
        <p class="shows">{status === 'passed' ? shows : sentence(message)}</p>
        {open.length > 0 && (
          <p class="quiet">
            {open.length === 1 ? 'One part is' : `${open.length} parts are`} not checked, and the verdict does
            not depend on {open.length === 1 ? 'it' : 'them'}.
          </p>
        )}
        <details open={status === 'failed'}>
          <summary>
            {checks.length === 1 ? 'The check' : `All ${checks.length} checks`}
            <span class="visually-hidden"> of “{title}”</span>
          </summary>
          <ul class="checks">
            {checks.map((check) => (
              <CheckItem key={`${check.code} ${check.path} ${check.message}`} check={check} />
            ))}
          </ul>
        </details>
      </div>
    </li>
  );
}

function CheckItem({ check }: { check: Check }) {
  const { status, message, code, path } = check;
  return (
    <li>
      <StatusChip status={status} /> {sentence(message)}{' '}
      <code class="code">
        {code}
        {path !== undefined && ` ${printable(path)}`}
      </code>
    </li>
  );
}

/** A message of the verifier as a sentence. */
function sentence(message: string): string {
  const text = printable(message);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
