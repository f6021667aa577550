/** Batches as text. */
import {
  type Batch,
  BatchSchema,
  BatchStatusSchema,
  type BatchWitness,
  WitnessStatus,
  WitnessStatusSchema,
} from '../../../gen/attestation/v1/batches_pb.js';
import { WitnessKindSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { compileWriter } from '../../server/json/codec.js';
import type { Columns } from './format.js';
import { formatTable } from './table.js';
import { timeText } from './time-text.js';

/** A batch as the JSON of the REST API. */
export const batchJson = compileWriter(BatchSchema);

/** Columns of a list of batches. */
export const BATCH_COLUMNS: Columns<Batch> = {
  head: ['ID', 'STATUS', 'SEALED', 'WITNESSED', 'FIRST INDEX', 'TREE SIZE', 'WITNESSES'],
  cells: (batch) => [
    batch.id,
    enumName(BatchStatusSchema, batch.status),
    timeText(batch.sealedAt),
    timeText(batch.witnessedAt),
    String(batch.firstIndex),
    String(batch.treeSize),
    `${batch.witnesses.filter(({ status }) => status === WitnessStatus.LANDED).length} of ${batch.witnesses.length}`,
  ],
  json: (batch) => batchJson(batch),
};

/** All fields of one batch but its checkpoint, then its witnesses. */
export function batchText(batch: Batch, paint: (cell: string) => string): string {
  const quorums = batch.quorums.map(({ threshold, members, landed }) => [
    'quorum',
    `${landed} of ${threshold} from ${printable(members.join(', '))}`,
  ]);
  return [
    formatTable([
      ['id', batch.id],
      ['status', enumName(BatchStatusSchema, batch.status)],
      ['sealed', timeText(batch.sealedAt)],
      ['witnessed', timeText(batch.witnessedAt)],
      ['log indexes', `${batch.firstIndex} to ${batch.treeSize - 1n} (${batch.leafCount})`],
      ['root hash', batch.rootHash],
      ...quorums,
    ]),
    '',
    formatTable(
      [
        ['WITNESS', 'KIND', 'STATUS', 'REQUIRED', 'LANDED', 'LAST ERROR'],
        ...batch.witnesses.map(witnessCells),
      ],
      {
        paint,
      },
    ),
  ].join('\n');
}

function witnessCells({ name, kind, status, required, landedAt, lastError }: BatchWitness): string[] {
  return [
    printable(name),
    enumName(WitnessKindSchema, kind),
    enumName(WitnessStatusSchema, status),
    required ? 'yes' : 'no',
    timeText(landedAt),
    printable(lastError ?? ''),
  ];
}
