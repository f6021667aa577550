import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { type Export, ExportService } from '../../../../gen/attestation/v1/exports_pb.js';
import { Button } from '../ui/button.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { Empty } from '../ui/states.js';
import { CreateExport } from './create-export.js';
import { ExportCard } from './export-card.js';

const POLL_MS = 5_000;

/** The exports of the project: continuous copies in storage of its own. */
export function ExportsPage() {
  const [isCreating, setCreating] = useState(false);
  const pages = useInfiniteQuery(
    ExportService.method.listExports,
    { limit: 50, cursor: '' },
    {
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      refetchInterval: POLL_MS,
    },
  );
  return (
    <>
      <PageHead title="Exports" hint="Continuous copies of submissions and bundles in storage of your own.">
        <Button isPrimary calls={ExportService.method.createExport} onClick={() => setCreating(true)}>
          Add export
        </Button>
      </PageHead>
      <PageList
        what="exports"
        pages={pages}
        empty={<Empty title="No exports">Add a bucket or repository that keeps a copy.</Empty>}
      >
        {(exports) => <Cards exports={exports} />}
      </PageList>
      {isCreating ? <CreateExport onClose={() => setCreating(false)} /> : null}
    </>
  );
}

function Cards({ exports }: { exports: Export[] }) {
  return exports.map((one) => <ExportCard key={one.id} listed={one} />);
}
