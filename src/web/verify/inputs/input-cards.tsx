import type { ComponentChildren } from 'preact';
import { countFiles } from '../../../proof/set/verify-set.js';
import type { GivenFolder } from '../folder/hash-folder.js';
import { findEmbeddedRoots } from '../place.js';
import { BundleSearch } from './bundle-search.tsx';
import { bytesText } from './bytes-text.js';
import { FilePicker, FolderPicker, TextEntry } from './entries.tsx';
import type { Artifact } from './input-files.js';
import type { Loadable } from './loading.js';
import type { Inputs } from './use-inputs.js';

/** What a check needs, each with its ways to give it. */
export function InputCards({ inputs }: { inputs: Inputs }) {
  const { artifact, bundle, set } = inputs;
  const isServed = findEmbeddedRoots() === undefined;
  return (
    <div class="cards">
      <Card takes="artifact" title="The file or folder" input={artifact} onClear={inputs.clearArtifact}>
        {artifact.state === 'ready' ? (
          <Given given={artifact.value} />
        ) : (
          <>
            <p>Drop here what was attested, or choose it. It is hashed in your browser and not uploaded.</p>
            <div class="actions">
              <FilePicker label="Choose the file…" onFile={inputs.giveArtifact} />
              <FolderPicker label="Choose a folder…" onFolder={inputs.giveArtifact} />
            </div>
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
            <FilePicker label="Choose the bundle…" onFile={(file) => inputs.giveProof(file, 'bundle')} />
            {isServed && <TextEntry label="or a submission ID" action="Look up" onText={inputs.giveId} />}
            {isServed && artifact.state === 'ready' && 'sha256' in artifact.value && (
              <BundleSearch
                key={artifact.value.sha256}
                sha256={artifact.value.sha256}
                onFound={inputs.giveId}
              />
            )}
          </>
        )}
      </Card>
      <Card takes="set" title="Its set file, for a folder" input={set} onClear={inputs.clearSet}>
        {set.state === 'ready' ? (
          <p class="name">
            <bdi>{set.value.name}</bdi>
            <span class="quiet"> {bytesText(set.value.file.size)}</span>
          </p>
        ) : (
          <>
            <p>
              A folder, or a file of one, is compared with the set file that came with the bundle. Not needed
              for anything else.
            </p>
            <FilePicker label="Choose the set file…" onFile={(file) => inputs.giveProof(file, 'set')} />
          </>
        )}
      </Card>
    </div>
  );
}

function Given({ given }: { given: Artifact | GivenFolder }) {
  const isFolder = 'files' in given;
  const size = isFolder ? given.files.reduce((sum, { bytes }) => sum + bytes, 0) : given.size;
  return (
    <>
      <p class="name">
        <bdi>{given.name}</bdi>
        {isFolder && <span class="quiet"> {countFiles(given.files.length)},</span>}
        {size !== undefined && <span class="quiet"> {bytesText(size)}</span>}
      </p>
      {isFolder && given.ignored > 0 && (
        <p class="quiet">Without {countFiles(given.ignored)} that .attestignore leaves out</p>
      )}
      {!isFolder && (
        <p class="quiet">
          SHA-256 <code class="hash">{given.sha256}</code>
        </p>
      )}
    </>
  );
}

type CardProps = {
  takes: 'artifact' | 'bundle' | 'set';
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
      {state === 'loading' ? <Progress {...input} /> : children}
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

function Progress({ name, progress, detail }: { name: string; progress?: number; detail?: string }) {
  return (
    <>
      <div role="status">
        <p>
          Reading <bdi>{name}</bdi>…
        </p>
        <progress value={progress} max={1} aria-label={`Reading ${name}`} />
      </div>
      {detail !== undefined && <p class="quiet">{detail}</p>}
    </>
  );
}
