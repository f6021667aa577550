import { useEffect, useState } from 'preact/hooks';
import { NO_EXPECTATIONS } from './inputs/expectations.js';
import { ExpectationsPanel } from './inputs/expectations-panel.tsx';
import { InputCards } from './inputs/input-cards.tsx';
import { type Inputs, useInputs } from './inputs/use-inputs.js';
import { findEmbeddedRoots } from './place.js';
import { Report } from './result/report.tsx';
import { useVerification } from './result/use-verification.js';
import { TrustPanel } from './trust/trust-panel.tsx';
import { useTrustRoots } from './trust/use-trust-roots.js';

/** The page: what is given, what it is checked against, and what came of it. */
export function App() {
  const inputs = useInputs();
  const trust = useTrustRoots();
  const [expectations, setExpectations] = useState(NO_EXPECTATIONS);
  const { artifact, bundle } = inputs;
  const outcome = useVerification({
    bundle: bundle.state === 'ready' ? bundle.value : undefined,
    artifactSha256: artifact.state === 'ready' ? artifact.value.sha256 : undefined,
    roots: trust.roots.state === 'ready' ? trust.roots.value : undefined,
    expectations,
  });
  const isDragging = useDrop(inputs);
  return (
    <div class={isDragging ? 'page dragging' : 'page'}>
      <Header />
      <main>
        <InputCards inputs={inputs} />
        {inputs.dropProblem && (
          <p class="problem" role="alert">
            {inputs.dropProblem}
          </p>
        )}
        <Report outcome={outcome} inputs={inputs} roots={trust.roots} />
        <div class="panels">
          <TrustPanel trust={trust} />
          <ExpectationsPanel value={expectations} onChange={setExpectations} />
        </div>
      </main>
      <Footer />
    </div>
  );
}

function Header() {
  return (
    <header>
      <svg class="logo" viewBox="0 0 32 32" width="40" height="40" aria-hidden="true">
        <path d="M16 2.5 27.5 6.5v9c0 7-4.8 11.8-11.5 14C9.3 27.3 4.5 22.500 4.500 15.500v-9z" />
        <path class="tick" d="m10.500 16 4 4 7.500-8.500" />
      </svg>
      <div>
        <h1>Verify a proof</h1>
        <p>
          Give a file and its proof bundle. Your browser checks every step itself;{' '}
          <strong>the file never leaves your computer</strong>.
        </p>
      </div>
    </header>
  );
}

function Footer() {
  const isFile = findEmbeddedRoots() !== undefined;
  return (
    <footer>
      {isFile ? (
        <p>This page is one file and uses no network. Keep it beside the bundles that you archive.</p>
      ) : (
        <p>
          The same checks without this page: <code>attest verify FILE --bundle BUNDLE</code>. The same page as
          one file that needs no network: <code>attest verify-page &gt; verify.html</code>.
        </p>
      )}
    </footer>
  );
}

/** Takes files that are dropped anywhere on the page; in a card they are what the card says. */
function useDrop(inputs: Inputs): boolean {
  const [isDragging, setDragging] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault();
      setDragging(event.type === 'dragover');
    };
    const drop = (event: DragEvent) => {
      over(event);
      take(inputs, event);
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', over);
      removeEventListener('drop', drop);
    };
  });
  return isDragging;
}

function take(inputs: Inputs, { dataTransfer, target }: DragEvent): void {
  const files = [...(dataTransfer?.files ?? [])];
  const [only] = files.length === 1 ? files : [];
  const card = target instanceof Element ? target.closest<HTMLElement>('[data-takes]') : null;
  if (only !== undefined && card?.dataset.takes === 'artifact') inputs.giveArtifact(only);
  else if (only !== undefined && card?.dataset.takes === 'bundle') inputs.giveBundle(only);
  else inputs.giveDropped(files);
}
