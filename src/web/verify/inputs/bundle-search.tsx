import { useState } from 'preact/hooks';
import { printable } from '../../../protocol/printable.js';
import { Instant } from '../instant.tsx';
import { findPublicSubmissions, type PublicMatch } from './fetch-published.js';
import { EMPTY, type Loadable, problemState } from './loading.js';

type Props = { sha256: string; onFound: (id: string) => void };

/** Asks the server for public bundles of the file, if the reader wants to: it takes telling its SHA-256. */
export function BundleSearch({ sha256, onFound }: Props) {
  const [matches, setMatches] = useState<Loadable<PublicMatch[]>>(EMPTY);
  const search = () => {
    setMatches({ state: 'loading', name: 'bundles' });
    findPublicSubmissions(sha256).then(
      (value) => {
        const [only] = value.length === 1 ? value : [];
        if (only !== undefined) onFound(only.id);
        else setMatches({ state: 'ready', value });
      },
      (error) => setMatches(problemState(error, 'The look-up failed.')),
    );
  };
  return (
    <div class="search">
      {matches.state === 'ready' ? (
        <Matches matches={matches.value} onFound={onFound} />
      ) : (
        <>
          <button type="button" class="plain" onClick={search} disabled={matches.state === 'loading'}>
            Find its bundle
          </button>
          <p class="quiet">Asks {location.host}, which learns the file’s SHA-256.</p>
        </>
      )}
      {matches.state === 'problem' && (
        <p class="problem" role="alert">
          {matches.message}
        </p>
      )}
    </div>
  );
}

function Matches({ matches, onFound }: { matches: readonly PublicMatch[]; onFound: (id: string) => void }) {
  if (matches.length === 0) {
    return (
      <p role="status">No public bundle of this file was found. Was it attested, and witnessed already?</p>
    );
  }
  return (
    <>
      <p role="status">{matches.length} submissions of this file were found, the newest first:</p>
      <ul class="matches">
        {matches.map(({ id, project, environment, submittedAt }) => (
          <li key={id}>
            <button type="button" class="plain" onClick={() => onFound(id)}>
              <Instant time={submittedAt} />
            </button>
            <span class="quiet">
              {environment}, by {printable(project)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
