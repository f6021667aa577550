import { useState } from 'preact/hooks';
import { SubmissionStatus, SubmissionStatusSchema } from '../../../../gen/attestation/v1/attestations_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Choice } from '../ui/choice.js';
import { PageHead } from '../ui/page-head.js';
import { Empty, ErrorState, Loading } from '../ui/states.js';
import { FindSubmission, type Wanted } from './find-submission.js';
import { SubmissionRows } from './submission-rows.js';
import { useSubmissions } from './use-submissions.js';

const ALL = String(SubmissionStatus.UNSPECIFIED);
const STATUSES = SubmissionStatusSchema.values.map(
  ({ number }) =>
    [
      String(number),
      String(number) === ALL ? 'All statuses' : enumName(SubmissionStatusSchema, number),
    ] as const,
);

/** The submissions of the project, newest first, as they come. */
export function SubmissionsPage() {
  const [wanted, setWanted] = useState<Wanted>({});
  const [status, setStatus] = useState(ALL);
  return (
    <>
      <PageHead title="Submissions" hint="Newest first, as they come. Each is one leaf of the log.">
        <Choice label="Status" isLabelHidden options={STATUSES} value={status} onChange={setStatus} />
      </PageHead>
      <FindSubmission wanted={wanted} onWanted={setWanted} />
      <List key={JSON.stringify([wanted, status])} wanted={wanted} status={Number(status)} />
    </>
  );
}

function List({ wanted, status }: { wanted: Wanted; status: SubmissionStatus }) {
  const list = useSubmissions({ ...wanted, status });
  if (list.rows.length > 0) return <SubmissionRows {...list} />;
  if (list.isPending || list.hasNextPage) return <Loading what="submissions" />;
  if (list.error !== null) return <ErrorState error={list.error} onRetry={list.refetch} />;
  if (Object.keys(wanted).length === 0 && status === SubmissionStatus.UNSPECIFIED)
    return (
      <Empty title="Nothing was submitted yet">
        Make an API key, and send the first submission with the line that it shows.
      </Empty>
    );
  return (
    <Empty title="No submission is like this">
      Look in the other environment, or for another file or build.
    </Empty>
  );
}
