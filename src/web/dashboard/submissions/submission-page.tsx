import { useQuery } from '@connectrpc/connect-query';
import {
  AttestationService,
  type Submission,
  SubmissionStatus,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Batch, BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { PageHead } from '../ui/page-head.js';
import { ErrorState, Loading } from '../ui/states.js';
import { Bundle } from './bundle.js';
import { Facts } from './facts.js';
import { MerklePath } from './merkle-path.js';
import { MetadataCard } from './metadata-card.js';
import { SubmissionState } from './submission-state.js';
import { Timeline } from './timeline.js';

const POLL_MS = 3_000;

/** All that is known of one submission. */
export function SubmissionPage({ id }: { id: string }) {
  const submission = useQuery(
    AttestationService.method.getAttestation,
    { id },
    { refetchInterval: ({ state }) => (isSettled(state.data) ? false : POLL_MS) },
  );
  const batchId = submission.data?.batchId ?? '';
  const batch = useQuery(
    BatchService.method.getBatch,
    { id: batchId },
    { enabled: batchId !== '', refetchInterval: isSettled(submission.data) ? false : POLL_MS },
  );
  if (submission.isPending) return <Loading what="the submission" />;
  if (submission.data === undefined) {
    return (
      <>
        <PageHead title="Submission" hint={id} />
        <ErrorState error={submission.error} onRetry={submission.refetch} />
      </>
    );
  }
  return <Shown submission={submission.data} batch={batch.data} />;
}

function isSettled(submission: { status: SubmissionStatus } | undefined): boolean {
  return submission?.status === SubmissionStatus.WITNESSED;
}

function Shown({ submission, batch }: { submission: Submission; batch: Batch | undefined }) {
  return (
    <>
      <PageHead title="Submission" hint={<code>{submission.id}</code>}>
        <SubmissionState submission={submission} />
      </PageHead>
      <div class="columns">
        <div class="stack">
          <section class="card" aria-labelledby="facts">
            <h2 id="facts">What was attested</h2>
            <Facts submission={submission} />
          </section>
          <MetadataCard submission={submission} />
          <Bundle submission={submission} />
        </div>
        <div class="stack">
          <section class="card" aria-labelledby="way">
            <h2 id="way">Timeline</h2>
            <Timeline submission={submission} batch={batch} />
          </section>
          {batch === undefined ? null : <MerklePath submission={submission} batch={batch} />}
        </div>
      </div>
    </>
  );
}
