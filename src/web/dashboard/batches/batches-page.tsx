import { useInfiniteQuery, useQuery } from '@connectrpc/connect-query';
import { lazy, Suspense } from 'react';
import { WitnessService } from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { type Batch, BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { Copyable } from '../ui/copy.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { Empty, ErrorState, Loading } from '../ui/states.js';
import { Matrix } from './matrix.js';
import { Witnesses } from './witnesses.js';

const SizeChart = lazy(async () => ({ default: (await import('./size-chart.js')).SizeChart }));
const POLL_MS = 5_000;

/** The batches of the project against their witnesses, the size of the log, its checkpoint and its epochs. */
export function BatchesPage() {
  const pages = useInfiniteQuery(
    BatchService.method.listBatches,
    { limit: 50, cursor: '' },
    {
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      refetchInterval: POLL_MS,
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
        empty={<Empty title="No batches yet">A batch is sealed within seconds of a submission.</Empty>}
      >
        {(batches) => <Log batches={batches} />}
      </PageList>
      <WitnessHealth />
    </>
  );
}

function Log({ batches }: { batches: Batch[] }) {
  const [newest] = batches;
  return (
    <>
      <Matrix batches={batches} />
      <div className="cards">
        <section className="card" aria-labelledby="size">
          <h2 id="size">Size of the log</h2>
          <Suspense fallback={<Loading what="the chart" />}>
            <SizeChart batches={batches} />
          </Suspense>
        </section>
        <section className="card" aria-labelledby="checkpoint">
          <h2 id="checkpoint">Newest checkpoint</h2>
          <p className="hint">
            Of the newest batch above. The first line is the log’s origin: a new epoch has a new one.
          </p>
          <Copyable label="checkpoint" text={newest?.checkpoint ?? ''} />
          <Epochs batches={batches} />
        </section>
      </div>
    </>
  );
}

/** The logs that the batches are in, the present one first. */
function Epochs({ batches }: { batches: Batch[] }) {
  const origins = [...new Set(batches.map(({ checkpoint }) => checkpoint.split('\n', 1)[0] ?? ''))];
  return (
    <dl>
      <dt>{origins.length === 1 ? 'Epoch' : 'Epochs'}</dt>
      <dd>
        {origins.map((origin) => (
          <code key={origin} className="sub">
            {origin}
          </code>
        ))}
      </dd>
    </dl>
  );
}

function WitnessHealth() {
  const witnesses = useQuery(WitnessService.method.listWitnesses, {}, { refetchInterval: POLL_MS });
  return (
    <section className="stack" aria-labelledby="witnesses">
      <h2 id="witnesses">Witnesses</h2>
      {witnesses.isPending ? <Loading what="witnesses" /> : null}
      {witnesses.error === null ? null : <ErrorState error={witnesses.error} onRetry={witnesses.refetch} />}
      {witnesses.data === undefined ? null : <Witnesses standings={witnesses.data.data} />}
    </section>
  );
}
