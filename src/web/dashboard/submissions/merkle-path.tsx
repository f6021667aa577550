import { useQuery } from '@connectrpc/connect-query';
import {
  AttestationService,
  type Submission,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Batch } from '../../../../gen/attestation/v1/batches_pb.js';
import { fromHex, toHex } from '../../../proof/bytes/encoding.js';
import { nodeHash } from '../../../proof/log/merkle.js';
import { count } from '../ui/count.js';
import { Scrollable } from '../ui/scrollable.js';
import { ErrorState, Loading } from '../ui/states.js';

const HAS_BUNDLE: readonly SubmissionStatus[] = [SubmissionStatus.WITNESSED, SubmissionStatus.PARTIAL];
const LEVEL = 62;
const BOX = { width: 150, height: 30 };
const MIDDLE = 270;
const AWAY = 190;

/** The path from the leaf to the root that the witnesses saw. */
export function MerklePath({ submission, batch }: { submission: Submission; batch: Batch }) {
  const hasBundle = HAS_BUNDLE.includes(submission.status);
  const bundle = useQuery(AttestationService.method.getBundle, { id: submission.id }, { enabled: hasBundle });
  const checkpoint = bundle.data?.checkpoints[0];
  return (
    <section class="card" aria-labelledby="path">
      <h2 id="path">Merkle path</h2>
      {hasBundle ? null : <p class="hint">It can be drawn once a witness has landed.</p>}
      {hasBundle && bundle.isPending ? <Loading what="the path" /> : null}
      {bundle.error === null ? null : <ErrorState error={bundle.error} onRetry={bundle.refetch} />}
      {checkpoint === undefined ? null : (
        <Tree
          levels={climb(
            fromHex(submission.leafSha256),
            { index: submission.logIndex, size: checkpoint.treeSize },
            checkpoint.inclusionProof,
          )}
          size={checkpoint.treeSize}
          batch={batch}
        />
      )}
    </section>
  );
}

/** A node of the path, and the hash beside it that leads to the one above. */
type Level = { own: Uint8Array; sibling?: Uint8Array; isSiblingLeft?: boolean };

/** The nodes from the leaf up (RFC 9162, section 2.1.3.2). */
function climb(
  leaf: Uint8Array,
  place: { index: bigint; size: bigint },
  proof: readonly Uint8Array[],
): Level[] {
  let [at, last] = [place.index, place.size - 1n];
  let own = leaf;
  const levels: Level[] = [];
  for (const sibling of proof) {
    const isSiblingLeft = at % 2n === 1n || at === last;
    levels.push({ own, sibling, isSiblingLeft });
    own = isSiblingLeft ? nodeHash(sibling, own) : nodeHash(own, sibling);
    if (isSiblingLeft) while (at % 2n === 0n && at !== 0n) [at, last] = [at / 2n, last / 2n];
    [at, last] = [at / 2n, last / 2n];
  }
  return [...levels, { own }];
}

function Tree({ levels, size, batch }: { levels: Level[]; size: bigint; batch: Batch }) {
  const height = levels.length * LEVEL;
  const root = toHex(levels.at(-1)?.own ?? new Uint8Array());
  const yOf = (level: number) => height - LEVEL / 2 - level * LEVEL;
  const says = size === batch.treeSize && root === batch.rootHash;
  return (
    <>
      <p class="hint">
        {count(levels.length - 1, 'hash leads', 'hashes lead')} from the leaf to the root of the log of{' '}
        {count(size, 'leaf', 'leaves')}.
        {says ? ' Computed in this browser, it is the root of the batch.' : ''}
      </p>
      <Scrollable label="Drawing of the path" class="path-box">
        <svg
          class="path"
          viewBox={`0 0 ${MIDDLE * 2} ${height}`}
          role="img"
          aria-label={`Merkle path to the root ${root}`}
        >
          {levels.map((level, at) => (
            <Joint
              key={toHex(level.own)}
              level={level}
              y={yOf(at)}
              isTop={at === levels.length - 1}
              isLeaf={at === 0}
            />
          ))}
        </svg>
      </Scrollable>
    </>
  );
}

function Joint({ level, y, isTop, isLeaf }: { level: Level; y: number; isTop: boolean; isLeaf: boolean }) {
  const x = level.isSiblingLeft ? MIDDLE - AWAY : MIDDLE + AWAY;
  const name = (isTop && 'root') || (isLeaf && 'leaf') || '';
  return (
    <g>
      {isTop ? null : <line class="own" x1={MIDDLE} y1={y} x2={MIDDLE} y2={y - LEVEL} />}
      {level.sibling === undefined ? null : (
        <>
          <line x1={x} y1={y} x2={MIDDLE} y2={y - LEVEL} />
          <Node hash={level.sibling} x={x} y={y} />
        </>
      )}
      <Node hash={level.own} x={MIDDLE} y={y} isOwn name={name} />
    </g>
  );
}

type NodeProps = { hash: Uint8Array; x: number; y: number; isOwn?: boolean; name?: string };

function Node({ hash, x, y, isOwn = false, name = '' }: NodeProps) {
  const hex = toHex(hash);
  return (
    <g class={isOwn ? 'own' : ''}>
      <title>{hex}</title>
      <rect x={x - BOX.width / 2} y={y - BOX.height / 2} width={BOX.width} height={BOX.height} rx={6} />
      <text x={x} y={y + 4} textAnchor="middle">
        {name === '' ? '' : `${name} `}
        {hex.slice(0, name === '' ? 14 : 9)}…
      </text>
    </g>
  );
}
