import { useInfiniteQuery, useQuery } from '@connectrpc/connect-query';
import { WitnessService } from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { Empty, ErrorState, Loading } from '../ui/states.js';
import { Log } from './log.js';
import { Matrix } from './matrix.js';
import { Witnesses } from './witnesses.js';

const POLL_MS = 5_000;

/** The batches of the project against their witnesses, the log that they are in, and the witnesses' health. */
export function BatchesPage() {
  const pages = useInfiniteQuery(
    BatchService.method.listBatches,
    { limit: 50, cursor: '' },
    {
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      // As many pages as are shown are read each time.
      refetchInterval: ({ state }) => POLL_MS * (state.data?.pages.length ?? 1),
    },
  );
  return (
    <>
      <PageHead
        title="Batches and log"
        hint="Batches that hold submissions of this project, and who has vouched for each."
      />
      <PageList
        what="batches"
        pages={pages}
        more="Show older batches"
        empty={<Empty title="No batches yet">A batch is sealed within seconds of a submission.</Empty>}
      >
        {(batches) => <Matrix batches={batches} />}
      </PageList>
      <Log />
      <WitnessHealth />
    </>
  );
}

function WitnessHealth() {
  const witnesses = useQuery(WitnessService.method.listWitnesses, {}, { refetchInterval: POLL_MS });
  return (
    <section class="stack" aria-labelledby="witnesses">
      <h2 id="witnesses">Witnesses</h2>
      {witnesses.isPending ? <Loading what="witnesses" /> : null}
      {witnesses.error === null ? null : <ErrorState error={witnesses.error} onRetry={witnesses.refetch} />}
      {witnesses.data === undefined ? null : <Witnesses standings={witnesses.data.data} />}
    </section>
  );
}
