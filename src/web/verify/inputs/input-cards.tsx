import type { ComponentChildren } from 'preact';
import { findEmbeddedRoots } from '../place.js';
import { BundleSearch } from './bundle-search.tsx';
import { bytesText } from './bytes-text.js';
import { FilePicker, TextEntry } from './entries.tsx';
import type { Loadable } from './loading.js';
import type { Inputs } from './use-inputs.js';

/** The two things that a check needs, each with its ways to give it. */
export function InputCards({ inputs }: { inputs: Inputs }) {
  const { artifact, bundle } = inputs;
  const isServed = findEmbeddedRoots() === undefined;
  return (
    <div class="cards">
      <Card takes="artifact" title="The file" input={artifact} onClear={inputs.clearArtifact}>
        {artifact.state === 'ready' ? (
          <>
            <p class="name">
              <bdi>{artifact.value.name}</bdi>
              {artifact.value.size !== undefined && (
                <span class="quiet"> {bytesText(artifact.value.size)}</span>
              )}
            </p>
            <p class="quiet">
              SHA-256 <code class="hash">{artifact.value.sha256}</code>
            </p>
          </>
        ) : (
          <>
            <p>Drop here what was attested, or choose it. It is hashed in your browser and not uploaded.</p>
            <FilePicker label="Choose the file…" onFile={inputs.giveArtifact} />
            <TextEntry label="or its SHA-256" action="Use" onText={inputs.giveDigest} />
          </>
        )}
      </Card>
      <Card takes="bundle" title="Its proof bundle" input={bundle} onClear={inputs.clearBundle}>
        {bundle.state === 'ready' ? (
          <p class="name">
            <bdi>{bundle.value.name}</bdi>
            <span class="quiet"> {bytesText(bundle.value.bytes.length)}</span>
          </p>
        ) : (
          <>
            <p>Drop here the JSON file that came with it, or choose it.</p>
            <FilePicker label="Choose the bundle…" onFile={inputs.giveBundle} />
            {isServed && <TextEntry label="or a submission ID" action="Look up" onText={inputs.giveId} />}
            {isServed && artifact.state === 'ready' && (
              <BundleSearch
                key={artifact.value.sha256}
                sha256={artifact.value.sha256}
                onFound={inputs.giveId}
              />
            )}
          </>
        )}
      </Card>
    </div>
  );
}

type CardProps = {
  takes: 'artifact' | 'bundle';
  title: string;
  input: Loadable<unknown>;
  onClear: () => void;
  children: ComponentChildren;
};

function Card({ takes, title, input, onClear, children }: CardProps) {
  const { state } = input;
  return (
    <section class={`card is-${state}`} data-takes={takes} aria-labelledby={`${takes}-title`}>
      <h2 id={`${takes}-title`}>{title}</h2>
      {state === 'loading' ? <Progress name={input.name} part={input.progress} /> : children}
      {state === 'problem' && (
        <p class="problem" role="alert">
          {input.message}
        </p>
      )}
      {(state === 'ready' || state === 'loading') && (
        <button type="button" class="plain" onClick={onClear}>
          {state === 'ready' ? 'Change' : 'Stop'}
        </button>
      )}
    </section>
  );
}

function Progress({ name, part }: { name: string; part: number | undefined }) {
  return (
    <div role="status">
      <p>
        Reading <bdi>{name}</bdi>…
      </p>
      <progress value={part} max={1} aria-label={`Reading ${name}`} />
    </div>
  );
}
