import { useEffect, useMemo, useState } from 'preact/hooks';
import { readBundle } from '../../proof/verify/read-bundle.js';
import { environmentName } from '../../protocol/environment.js';
import { CertificateSheet } from './certificate-sheet.tsx';
import { NO_EXPECTATIONS } from './expectations.js';
import { fetchPublicBundle } from './fetch-published.js';
import type { GivenBundle } from './input-files.js';
import { type Loadable, problemState } from './loading.js';
import { urlBelow } from './place.js';
import { useTrustRoots } from './use-trust-roots.js';
import { useVerification } from './use-verification.js';

/** The certificate of one submission: its public bundle, verified here, as a sheet to print. */
export function CertificatePage({ id }: { id: string }) {
  const bundle = usePublicBundle(id);
  const { roots } = useTrustRoots();
  const given = bundle.state === 'ready' ? bundle.value : undefined;
  const outcome = useVerification({
    bundle: given,
    roots: roots.state === 'ready' ? roots.value : undefined,
    ...useOwnQuestion(given),
  });
  const problem = [bundle, roots].find(({ state }) => state === 'problem');
  const message = problem?.state === 'problem' ? problem.message : outcome?.problem;
  return (
    <div class="page sheet-page">
      <main>
        {message !== undefined && (
          <div class="problem" role="alert">
            <h1>No certificate</h1>
            <p>{message}</p>
          </div>
        )}
        {message === undefined && outcome?.result === undefined && <p role="status">Checking the proof…</p>}
        {outcome?.result !== undefined && <CertificateSheet id={id} result={outcome.result} />}
      </main>
      <nav class="share" aria-label="This certificate">
        <button type="button" onClick={() => print()}>
          Print
        </button>
        <a href={urlBelow(`#id=${id}`).href}>Check a file against this proof</a>
      </nav>
    </div>
  );
}

function usePublicBundle(id: string): Loadable<GivenBundle> {
  const [bundle, setBundle] = useState<Loadable<GivenBundle>>({ state: 'loading', name: id });
  useEffect(() => {
    fetchPublicBundle(id).then(
      (value) => setBundle({ state: 'ready', value }),
      (error) => setBundle(problemState(error, 'The bundle cannot be read.')),
    );
  }, [id]);
  return bundle;
}

/** A certificate is about whatever file has the attested SHA-256, in the environment of its submission. */
function useOwnQuestion(bundle: GivenBundle | undefined) {
  return useMemo(() => {
    const submission = bundle && readBundle(bundle.bytes).parsed?.submission;
    const environment = submission === undefined ? 'live' : environmentName(submission.environment);
    return {
      artifactSha256: submission?.artifactSha256,
      expectations: { ...NO_EXPECTATIONS, environment },
    };
  }, [bundle]);
}
