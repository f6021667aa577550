/** Bundles whose statement was erased, and forgeries of what was. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Bundle } from '../../verifying.js';
import { theirs } from '../public-sample.js';
import { type Edits, entry, envelope, passes, restate, sigstore } from './edits.js';
import { resign } from './forger.js';

/** The bundle as the service gives it once it has erased the statement. */
export function erased(bundle: JsonObject): Bundle {
  const copy = structuredClone(bundle) as unknown as Bundle;
  const { dsseEnvelope: _, ...others } = copy.sigstore_bundle;
  const submission = { ...copy.submission, statement_erased_at: '2025-07-01T00:00:00Z' };
  return { ...copy, submission, sigstore_bundle: others as Bundle['sigstore_bundle'] };
}

/** Statements that were erased, restored by hand. */
export const RESTORED: Edits = [
  [
    'an erased statement, written again with another result',
    (b) => {
      const restored = structuredClone(b);
      restate(passes)(restored);
      Object.assign(b, erased(b as unknown as JsonObject));
      delete b.submission.statement_erased_at;
      Object.assign(sigstore(b), { dsseEnvelope: envelope(restored) });
    },
  ],
  [
    'an erased statement that is there',
    (b) => Object.assign(b.submission, { statement_erased_at: '2025-07-01T00:00:00Z' }),
  ],
  [
    'an erased statement without its mark',
    (b) => {
      Object.assign(b, erased(b as unknown as JsonObject));
      delete b.submission.statement_erased_at;
    },
  ],
  [
    'an erased statement in the log of another submission',
    (b) => {
      Object.assign(b, erased(b as unknown as JsonObject));
      Object.assign(entry(b), { canonicalizedBody: entry(theirs).canonicalizedBody });
    },
  ],
  [
    'an erased statement by a key of the forger',
    (b) => {
      resign(passes)(b);
      Object.assign(b, erased(b as unknown as JsonObject));
    },
  ],
];
