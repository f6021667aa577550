import { FilePicker } from '../inputs/entries.tsx';
import { Instant } from '../instant.tsx';
import type { Roots, RootsOrigin, TrustRootsState } from './use-trust-roots.js';

/** Whose keys decide, said plainly, and how to give others. */
export function TrustPanel({ trust }: { trust: TrustRootsState }) {
  const { roots } = trust;
  return (
    <section class="panel" aria-labelledby="trust-title">
      <h2 id="trust-title">Trusted keys</h2>
      {roots.state === 'loading' && <p role="status">Reading the trust roots…</p>}
      {roots.state === 'problem' && (
        <div class="problem" role="alert">
          <p>{roots.message} Nothing can be verified without trust roots.</p>
          <button type="button" onClick={trust.reset}>
            Try again
          </button>
        </div>
      )}
      {roots.state === 'ready' && <TrustSource roots={roots.value} />}
      <div class="actions">
        <FilePicker label="Use my own copy…" onFile={trust.giveOwn} />
        {roots.state === 'ready' && roots.value.origin.kind === 'own' && (
          <button type="button" class="plain" onClick={trust.reset}>
            Back to the page’s own
          </button>
        )}
      </div>
    </section>
  );
}

function TrustSource({ roots }: { roots: Roots }) {
  return (
    <>
      <Origin origin={roots.origin} />
      <details>
        <summary>What is in them</summary>
        <ul class="counts">
          {roots.counts.map(([count, what]) => (
            <li key={what}>
              {what}: {count}
            </li>
          ))}
        </ul>
        <p class="quiet">SHA-256 of these trust roots, to compare with a copy of yours</p>
        <code class="hash">{roots.sha256}</code>
      </details>
    </>
  );
}

function Origin({ origin }: { origin: RootsOrigin }) {
  switch (origin.kind) {
    case 'server':
      return (
        <p>
          The trust roots that <strong>{new URL(origin.url).host}</strong> publishes now. You take that
          server’s word for whose keys are trusted; with a copy that you kept or got elsewhere, you need not.
        </p>
      );
    case 'page':
      return (
        <p>
          The trust roots <strong>inside this file</strong>
          {origin.from !== '' && (
            <>
              , from <bdi>{origin.from}</bdi>
            </>
          )}
          {origin.savedAt !== '' && (
            <>
              , saved on <Instant time={origin.savedAt} />
            </>
          )}
          . They are as good as the source of this file.
        </p>
      );
    case 'own':
      return (
        <p>
          <strong>Your own copy</strong>, <bdi>{origin.name}</bdi>.
        </p>
      );
  }
}

/** Whose trust roots they are, in a few words. */
export function originText(origin: RootsOrigin): string {
  switch (origin.kind) {
    case 'server':
      return `the trust roots that ${new URL(origin.url).host} publishes now`;
    case 'page':
      return 'the trust roots inside this file';
    case 'own':
      return `your own trust roots, ${origin.name}`;
  }
}
