import { useState } from 'preact/hooks';
import { isPageOnDisk } from './folder/list-folder.js';
import { FolderDrop } from './inputs/entries.tsx';
import { NO_EXPECTATIONS } from './inputs/expectations.js';
import { ExpectationsPanel } from './inputs/expectations-panel.tsx';
import { InputCards } from './inputs/input-cards.tsx';
import type { Loadable } from './inputs/loading.js';
import { useDrop } from './inputs/use-drop.js';
import { useInputs } from './inputs/use-inputs.js';
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
  const { artifact, bundle, set } = inputs;
  const outcome = useVerification({
    bundle: readyValue(bundle),
    given: readyValue(artifact),
    set: readyValue(set),
    isReading: artifact.state === 'loading' || set.state === 'loading',
    roots: readyValue(trust.roots),
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
      {isPageOnDisk() && <FolderDrop onFolder={inputs.giveArtifact} />}
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
          Give a file or a folder and its proof bundle. Your browser checks every step itself;{' '}
          <strong>no file leaves your computer</strong>.
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

function readyValue<T>(input: Loadable<T>): T | undefined {
  return input.state === 'ready' ? input.value : undefined;
}
