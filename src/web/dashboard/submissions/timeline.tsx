import { type Submission, SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Batch, type BatchWitness, WitnessStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import { WitnessKind, WitnessKindSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { count } from '../ui/count.js';
import { safe } from '../ui/safe.js';
import type { Tone } from '../ui/status.js';
import { Afterwards } from './afterwards.js';
import { Step } from './step.js';

/** The way of a submission: accepted, sealed, each witness, settled, and what followed. */
export function Timeline({ submission, batch }: { submission: Submission; batch: Batch | undefined }) {
  return (
    <ol class="timeline">
      <Step tone="good" title="Accepted" at={submission.submittedAt}>
        Durable in the log, at index {submission.logIndex.toLocaleString()}.
      </Step>
      <Step tone={batch === undefined ? 'wait' : 'good'} title="Sealed" at={batch?.sealedAt}>
        {batch === undefined
          ? 'Waiting for the next batch.'
          : `In a batch of ${batch.leafCount.toLocaleString()}, in a tree of ${count(batch.treeSize, 'leaf', 'leaves')}.`}
      </Step>
      {batch?.witnesses
        .filter(({ kind }) => kind !== WitnessKind.TRANSPARENCY_LOG)
        .map((witness) => (
          <WitnessStep key={witness.name} witness={witness} />
        ))}
      <Settled submission={submission} />
      <Afterwards submission={submission} />
    </ol>
  );
}

const WITNESS_TONES: Partial<Record<WitnessStatus, Tone>> = {
  [WitnessStatus.LANDED]: 'good',
  [WitnessStatus.PENDING]: 'wait',
  [WitnessStatus.FAILED]: 'bad',
};

function WitnessStep({ witness }: { witness: BatchWitness }) {
  const { name, kind, status, required, landedAt, lastError } = witness;
  return (
    <Step tone={WITNESS_TONES[status] ?? 'plain'} title={`Witness ${safe(name)}`} at={landedAt}>
      {enumName(WitnessKindSchema, kind)}, {required ? 'required' : 'not required'}: {witnessText(witness)}
      {lastError ? ` Last error: ${safe(lastError)}` : ''}
    </Step>
  );
}

function witnessText({ status, coversTreeSize }: BatchWitness): string {
  if (status === WitnessStatus.LANDED)
    return `evidence over the log of ${count(coversTreeSize ?? 0n, 'leaf', 'leaves')} has landed.`;
  return status === WitnessStatus.FAILED ? 'no evidence by the deadline.' : 'requested, no evidence yet.';
}

const SETTLED: Partial<Record<SubmissionStatus, readonly [Tone, string]>> = {
  [SubmissionStatus.QUEUED]: ['plain', 'Waiting for the witnesses.'],
  [SubmissionStatus.WITNESSED]: ['good', 'Every required witness has vouched for the batch.'],
  [SubmissionStatus.PARTIAL]: ['wait', 'Some required witnesses are missing. They can still come.'],
  [SubmissionStatus.FAILED]: ['bad', 'No required witness has come by the deadline. They can still come.'],
};

function Settled({ submission: { status, witnessedAt } }: { submission: Submission }) {
  const [tone, text] = SETTLED[status] ?? ['plain', ''];
  return (
    <Step tone={tone} title="Settled" at={witnessedAt}>
      {text}
    </Step>
  );
}
