import type { Edits } from './edits.js';

/** Witnesses and times. */
export const WITNESSES: Edits = [
  ['no required witness', (b) => b.witnesses.splice(1, 1)],
  ['no witness', (b) => Object.assign(b, { witnesses: [] })],
  ['a required witness under another name', (b) => Object.assign(b.witnesses[1]!, { name: 'tsa2' })],
  [
    'another witness under the name of the required one',
    (b) => Object.assign(b.witnesses.splice(1, 1) && b.witnesses[1]!, { name: 'tsa' }),
  ],
  ['a required witness of another kind', (b) => Object.assign(b.witnesses[1]!, { kind: 'log_witness' })],
  [
    'an earlier time than the stamp states',
    (b) => Object.assign(b.witnesses[1]!.detail, { gen_time: '2024-06-07T12:00:01.000Z' }),
  ],
  [
    'an earlier submitted_at',
    (b) => Object.assign(b.submission, { submitted_at: '2024-06-07T11:59:59.123Z' }),
  ],
  ['a required witness on a later checkpoint', (b) => Object.assign(b.witnesses[1]!, { tree_size: 1300 })],
];
