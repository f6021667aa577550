import {
  type Batch,
  BatchStatus,
  BatchStatusSchema,
  type BatchWitness,
  WitnessStatus,
  WitnessStatusSchema,
} from '../../../../gen/attestation/v1/batches_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { safe } from '../ui/safe.js';
import { Scrollable } from '../ui/scrollable.js';
import { Status, type Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';

const BATCH_TONES: Partial<Record<BatchStatus, Tone>> = {
  [BatchStatus.WITNESSED]: 'good',
  [BatchStatus.PARTIAL]: 'wait',
  [BatchStatus.FAILED]: 'bad',
};
const WITNESS_TONES: Partial<Record<WitnessStatus, Tone>> = {
  [WitnessStatus.LANDED]: 'good',
  [WitnessStatus.PENDING]: 'wait',
  [WitnessStatus.FAILED]: 'bad',
};

/** Batches down, witnesses across. */
export function Matrix({ batches }: { batches: Batch[] }) {
  const names = [...new Set(batches.flatMap(({ witnesses }) => witnesses.map(({ name }) => name)))];
  return (
    <Scrollable class="table-box matrix" label="Batches by witness">
      <table aria-label="Batches by witness">
        <thead>
          <tr>
            <th scope="col">Batch</th>
            <th scope="col">Leaves</th>
            <th scope="col">Status</th>
            {names.map((name) => (
              <th key={name} scope="col">
                {safe(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {batches.map((batch) => (
            <Row key={batch.id} batch={batch} names={names} />
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function Row({ batch, names }: { batch: Batch; names: string[] }) {
  const { id, status, leafCount, treeSize, sealedAt, witnesses } = batch;
  return (
    <tr>
      <td>
        <code title={id}>…{id.slice(-8)}</code>{' '}
        <span class="sub">
          <Time at={sealedAt} />
        </span>
      </td>
      <td>
        {leafCount.toLocaleString()}
        <span class="sub">of {treeSize.toLocaleString()}</span>
      </td>
      <td>
        <Status tone={BATCH_TONES[status] ?? 'plain'}>{enumName(BatchStatusSchema, status)}</Status>
      </td>
      {names.map((name) => (
        <td key={name}>
          <Cell batch={batch} witness={witnesses.find((one) => one.name === name)} />
        </td>
      ))}
    </tr>
  );
}

/** What one witness says of one batch; evidence over a larger tree covers the batch as well. */
function Cell({ batch, witness }: { batch: Batch; witness: BatchWitness | undefined }) {
  if (witness === undefined) return <span>–</span>;
  const { status, coversTreeSize, landedAt, lastError, required } = witness;
  const isCovered = coversTreeSize !== undefined && coversTreeSize > batch.treeSize;
  return (
    <span title={lastError ? safe(lastError) : undefined}>
      <Status tone={WITNESS_TONES[status] ?? 'plain'}>{enumName(WitnessStatusSchema, status)}</Status>
      <span class="sub">
        {isCovered ? (
          `covered by ${coversTreeSize.toLocaleString()}`
        ) : (
          <Time at={landedAt} none={required ? 'required' : ''} />
        )}
      </span>
    </span>
  );
}
