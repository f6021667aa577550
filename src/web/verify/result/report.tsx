import { STEP_NAMES } from '../../../proof/verify/report.js';
import { printable } from '../../../protocol/printable.js';
import { FolderFindings } from '../folder/folder-findings.tsx';
import type { Loadable } from '../inputs/loading.js';
import type { Inputs } from '../inputs/use-inputs.js';
import type { Roots } from '../trust/use-trust-roots.js';
import { MerklePath } from './merkle-path.tsx';
import { ShareLink } from './share-link.tsx';
import { StepList } from './step-list.tsx';
import { STEP_TEXTS, VERDICT_TEXTS } from './step-texts.js';
import type { Outcome, Result } from './use-verification.js';
import { VerdictBanner } from './verdict-banner.tsx';
import { WitnessList } from './witness-list.tsx';

type Props = { outcome: Outcome; inputs: Inputs; roots: Loadable<Roots> };

/** What came of the check; before there is anything to check, what will come. */
export function Report({ outcome, inputs, roots }: Props) {
  return (
    <section class="report" aria-labelledby="report-title">
      <h2 id="report-title" class="visually-hidden">
        Result
      </h2>
      <p class="visually-hidden" role="status">
        {announcementOf(outcome)}
      </p>
      {outcome?.problem !== undefined && (
        <p class="problem" role="alert">
          {outcome.problem}
        </p>
      )}
      {outcome?.result !== undefined && <Found result={outcome.result} inputs={inputs} />}
      {outcome === undefined && <Nothing roots={roots} isWaiting={inputs.bundle.state === 'ready'} />}
    </section>
  );
}

/** What screen readers say when the result is there; the element for it is there before. */
function announcementOf(outcome: Outcome): string {
  if (outcome?.result === undefined) return '';
  const { verdict, summary } = outcome.result.verification;
  return `${VERDICT_TEXTS[verdict].title}. ${printable(summary)}`;
}

function Nothing({ roots, isWaiting }: { roots: Loadable<Roots>; isWaiting: boolean }) {
  if (roots.state === 'problem') {
    return <p class="problem">{roots.message} Nothing can be verified without trust roots: see below.</p>;
  }
  if (isWaiting) return <p class="empty">Checking…</p>;
  return (
    <div class="empty">
      <p>Nothing is checked yet. These are the steps:</p>
      <ol class="preview">
        {STEP_NAMES.map((name) => (
          <li key={name}>{STEP_TEXTS[name].title}</li>
        ))}
      </ol>
    </div>
  );
}

function Found({ result, inputs }: { result: Result; inputs: Inputs }) {
  const { verification, parsed, compared } = result;
  return (
    <>
      <VerdictBanner result={result} inputs={inputs} />
      {compared && <FolderFindings compared={compared} />}
      <div class="columns">
        <section aria-labelledby="steps-title">
          <h2 id="steps-title">Every step</h2>
          <StepList steps={verification.steps} />
        </section>
        <div>
          <section aria-labelledby="witnesses-title">
            <h2 id="witnesses-title">Who vouches, and when</h2>
            <WitnessList verification={verification} parsed={parsed} />
          </section>
          {parsed && (
            <section aria-labelledby="path-title">
              <h2 id="path-title">The path in the log</h2>
              <MerklePath key={result.bundle.name} parsed={parsed} />
            </section>
          )}
        </div>
      </div>
      <ShareLink result={result} />
    </>
  );
}
