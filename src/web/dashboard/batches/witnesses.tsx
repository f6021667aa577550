import type { WitnessStanding } from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { WitnessKindSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { environmentNumber } from '../../../protocol/environment.js';
import { useScope } from '../scope.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Status } from '../ui/status.js';
import { Time } from '../ui/time.js';

const COLUMNS: Column<WitnessStanding>[] = [
  { header: 'Witness', cell: (row) => <Name standing={row} /> },
  { header: 'Health', cell: (row) => <Health standing={row} /> },
  { header: 'Has attested to', cell: (row) => <Covered standing={row} /> },
  {
    header: 'Last evidence',
    cell: (row) => <Time at={row.lastSuccessAt} none="never" />,
  },
  { header: 'Asked next', cell: (row) => <Time at={row.nextAttemptAt} /> },
];

/** The health of each witness of the environment. */
export function Witnesses({ standings }: { standings: WitnessStanding[] }) {
  const wanted = environmentNumber(useScope().scope.environment);
  const shown = standings.filter(({ environment }) => environment === wanted);
  if (shown.length === 0)
    return <Empty title="No witnesses">Beside the log itself nobody vouches for batches.</Empty>;
  return (
    <DataTable label="Witnesses" columns={COLUMNS} data={shown} idOf={({ log, name }) => `${log} ${name}`} />
  );
}

type Props = { standing: WitnessStanding };

function Name({ standing: { name, kind, required } }: Props) {
  return (
    <div>
      <strong>{safe(name)}</strong>
      <span class="sub">
        {enumName(WitnessKindSchema, kind)}, {required ? 'required' : 'not required'}
      </span>
    </div>
  );
}

function Health({ standing: { consecutiveFailures, lastError, pendingRequests } }: Props) {
  if (consecutiveFailures > 0)
    return (
      <div>
        <Status tone="bad">{`${consecutiveFailures} failures`}</Status>
        <span class="sub">{safe(lastError)}</span>
      </div>
    );
  return (
    <Status tone="good">{pendingRequests > 0 ? `${pendingRequests} requests pending` : 'answers'}</Status>
  );
}

function Covered({ standing: { coveredTreeSize, publishedTreeSize } }: Props) {
  return (
    <span>
      {coveredTreeSize.toLocaleString()} of {publishedTreeSize.toLocaleString()}
    </span>
  );
}
