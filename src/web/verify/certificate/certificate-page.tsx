import { useEffect, useMemo, useState } from 'preact/hooks';
import { readBundle } from '../../../proof/verify/read/read-bundle.js';
import { environmentName } from '../../../protocol/environment.js';
import { NO_EXPECTATIONS } from '../inputs/expectations.js';
import { fetchPublicBundle } from '../inputs/fetch-published.js';
import type { GivenBundle } from '../inputs/input-files.js';
import { type Loadable, problemState } from '../inputs/loading.js';
import { urlBelow } from '../place.js';
import { useVerification } from '../result/use-verification.js';
import { useTrustRoots } from '../trust/use-trust-roots.js';
import { CertificateSheet } from './certificate-sheet.tsx';

/** The certificate of one submission: its public bundle, verified here, as a sheet to print. */
export function CertificatePage({ id }: { id: string }) {
  useEffect(() => {
    document.title = `Certificate of ${id}`;
  }, [id]);
  const bundle = usePublicBundle(id);
  const { roots } = useTrustRoots();
  const given = bundle.state === 'ready' ? bundle.value : undefined;
  const outcome = useVerification({
    bundle: given,
    roots: roots.state === 'ready' ? roots.value : undefined,
    ...useOwnQuestion(given),
  });
  const problem = [bundle, roots].find(({ state }) => state === 'problem');
  const isVerified = outcome?.result?.verification.verdict === 'verified';
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
      {isVerified ? (
        <CertificateTools id={id} />
      ) : (
        <nav aria-label="Elsewhere">
          <a href={urlBelow('').href}>Verify a proof</a>
        </nav>
      )}
    </div>
  );
}

/** What can be done with a certificate on a screen: print it, check a file, show its badge elsewhere. */
function CertificateTools({ id }: { id: string }) {
  const badge = urlBelow(`badge/${id}.svg`).href;
  const markdown = `[![attested](${badge})](${urlBelow(`certificate/${id}`).href})`;
  return (
    <section class="tools" aria-label="This certificate">
      <div class="share">
        <button type="button" onClick={() => print()}>
          Print
        </button>
        <a href={urlBelow(`#id=${id}`).href}>Check a file against this proof</a>
      </div>
      <details>
        <summary>Badge for a README or a page</summary>
        <p>
          <img src={badge} alt="Badge of this proof" height={20} />
        </p>
        <code class="hash">{markdown}</code>
      </details>
    </section>
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
