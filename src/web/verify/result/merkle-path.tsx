import { useState } from 'preact/hooks';
import { toHex } from '../../../proof/bytes/encoding.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { findPath, leafHash, type PathStep } from '../../../proof/log/merkle.js';
import type { ParsedBundle, ParsedCheckpoint } from '../../../proof/verify/read/parsed-bundle.js';
import { StatusIcon } from './status.tsx';
import { TreeDrawing } from './tree-drawing.tsx';

/** The way from the leaf to the root, drawn from what was computed, for one checkpoint at a time: first one that is wrong. */
export function MerklePath({ parsed }: { parsed: ParsedBundle }) {
  const leaf = leafHash(parsed.entry.body);
  const paths = parsed.checkpoints.map((checkpoint) => climb(leaf, parsed.entry.logIndex, checkpoint));
  const [chosen, setChosen] = useState<number>();
  const wrong = paths.findIndex(({ isRoot }) => !isRoot);
  const shown = chosen ?? Math.max(wrong, 0);
  const path = paths[shown];
  if (path === undefined) return null;
  return (
    <>
      {paths.length > 1 && (
        <label class="field">
          Checkpoint
          <select value={shown} onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}>
            {paths.map(({ checkpoint: { size } }, i) => (
              <option key={size} value={i}>
                {size.toLocaleString()} entries
              </option>
            ))}
          </select>
        </label>
      )}
      <Path path={path} />
    </>
  );
}

/** `steps` is undefined if the proof does not have the length of the leaf's path. */
type ClimbedPath = {
  readonly leaf: Uint8Array;
  readonly index: number;
  readonly checkpoint: ParsedCheckpoint;
  readonly steps: readonly PathStep[] | undefined;
  readonly computed: Uint8Array;
  readonly isRoot: boolean;
};

function climb(leaf: Uint8Array, index: number, checkpoint: ParsedCheckpoint): ClimbedPath {
  const { size, rootHash, inclusionProof } = checkpoint;
  const steps = findPath({ leafHash: leaf, index, size }, inclusionProof);
  const computed = steps?.at(-1)?.parent ?? leaf;
  const isRoot = steps !== undefined && equalBytes(computed, rootHash);
  return { leaf, index, checkpoint, steps, computed, isRoot };
}

function Path({ path }: { path: ClimbedPath }) {
  const { leaf, index, checkpoint, steps, computed, isRoot } = path;
  const { size, rootHash, inclusionProof } = checkpoint;
  if (steps === undefined) {
    return (
      <p class="problem">
        The proof has {inclusionProof.length} hashes, which is not the length of the way from entry{' '}
        {index.toLocaleString()} to the root of {size.toLocaleString()} entries.
      </p>
    );
  }
  const way = `Entry ${index.toLocaleString()} of ${size.toLocaleString()}, ${steps.length} steps to the root`;
  return (
    <>
      <p class={`path-verdict ${isRoot ? 'passed' : 'failed'}`}>
        <StatusIcon status={isRoot ? 'passed' : 'failed'} size={20} />
        {isRoot
          ? 'The computed root is the one in the checkpoint.'
          : 'The computed root is not the one in the checkpoint.'}
      </p>
      <TreeDrawing {...{ leaf, index, steps, computed, isRoot, label: way }} />
      <p class="legend">
        <span class="swatch computed" /> computed here <span class="swatch given" /> given in the bundle
      </p>
      <HashTable leaf={leaf} steps={steps} rootHash={rootHash} />
    </>
  );
}

function HashTable(props: { leaf: Uint8Array; steps: readonly PathStep[]; rootHash: Uint8Array }) {
  const { leaf, steps, rootHash } = props;
  return (
    <details>
      <summary>All hashes in full</summary>
      <ol class="hashes">
        <li>
          Leaf <code class="hash">{toHex(leaf)}</code>
        </li>
        {steps.map(({ sibling, isSiblingLeft, parent }) => (
          <li key={toHex(parent)}>
            {isSiblingLeft ? 'Left' : 'Right'} neighbour <code class="hash">{toHex(sibling)}</code>
            together <code class="hash">{toHex(parent)}</code>
          </li>
        ))}
        <li>
          Root in the checkpoint <code class="hash">{toHex(rootHash)}</code>
        </li>
      </ol>
    </details>
  );
}
