/** Step 7: checks each witness's evidence against its checkpoint. */
import {
  type BundleWitness,
  WitnessKind,
  WitnessKindSchema,
} from '../../../../gen/attestation/v1/bundle_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { toBase64 } from '../../bytes/encoding.js';
import type { Evidence, EvidenceSources, Finding } from '../evidence/evidence.js';
import { checkEvm } from '../evidence/evm-evidence.js';
import { checkCosignature, checkLogEvidence } from '../evidence/log-evidence.js';
import { checkOpenTimestamps } from '../evidence/opentimestamps-evidence.js';
import { checkTimestamp } from '../evidence/timestamp-evidence.js';
import type { Memo } from '../memo.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { UNKNOWN_ENUM_VALUE } from '../read/read-json.js';
import { type Check, type CheckStatus, failed, notChecked } from '../report.js';
import type { Trust } from '../trust.js';

/**
 * The result for one witness. `time` is the latest time at which it can have signed, if it states one and is trusted:
 * its own time plus its accuracy, stated or implied by the last digit.
 */
export type WitnessFinding = Check & {
  readonly name: string;
  /** Name of the kind on REST; `unknown` for one that this version does not know. */
  readonly kind: string;
  readonly treeSize: number;
  readonly time?: Date;
  /** Its operator, if the trust roots name it; `self` is the operator of the service. */
  readonly operator?: string;
};

/** What evidence is checked against, and the results so far. */
type WitnessChecks = {
  readonly trust: Trust;
  readonly sources: EvidenceSources;
  readonly memo: Memo<Finding>;
};

/**
 * Checks every witness of the bundle against the trust roots. `signed` says by tree size whether
 * the checkpoint is signed by a trusted log. What needs more than the bundle and `sources` is `not_checked`. `memo` must be of this trust
 * and these sources.
 */
export async function checkWitnesses(
  parsed: ParsedBundle,
  { trust, sources, memo }: WitnessChecks,
  signed: ReadonlyMap<number, CheckStatus>,
): Promise<WitnessFinding[]> {
  return Promise.all(
    parsed.witnesses.map(async (witness, i) => {
      const { check, ...said } = await memo(memoKey(parsed, signed, witness, i), () =>
        checkWitness(parsed, { trust, sources, signed }, witness, `/witnesses/${i}`),
      );
      const { name, kind, treeSize } = witness;
      return { ...check, ...said, name, kind: kindName(kind), treeSize: Number(treeSize) };
    }),
  );
}

/** Everything that the result of {@link checkWitness} depends on, beside trust and sources. */
function memoKey(
  { checkpoints, batch }: ParsedBundle,
  signed: ReadonlyMap<number, CheckStatus>,
  { name, kind, treeSize, evidence, detail }: BundleWitness,
  i: number,
): string {
  const note = checkpoints.find(({ size }) => BigInt(size) === treeSize)?.envelope;
  const numbers = [i, kind, treeSize, batch.firstIndex].map(String);
  return JSON.stringify([numbers, signed.get(Number(treeSize)), name, toBase64(evidence), detail, note]);
}

async function checkWitness(
  { checkpoints, batch }: ParsedBundle,
  {
    trust,
    sources,
    signed,
  }: Omit<WitnessChecks, 'memo'> & { readonly signed: ReadonlyMap<number, CheckStatus> },
  witness: BundleWitness,
  path: string,
): Promise<Finding> {
  if (witness.kind === UNKNOWN_ENUM_VALUE) {
    const message = `${witness.name} is a witness of a kind that this version does not know`;
    return { check: notChecked('witness.unknown_kind', message) };
  }
  const checkpoint = checkpoints.find(({ size }) => BigInt(size) === witness.treeSize);
  if (checkpoint === undefined) {
    const message = `${witness.name} vouches for a checkpoint that is not in the bundle`;
    return { check: failed('witness.no_checkpoint', message, `${path}/tree_size`) };
  }
  const evidence: Evidence = { witness, checkpoint, path };
  switch (witness.kind) {
    case WitnessKind.TRANSPARENCY_LOG:
      return checkLogEvidence(evidence, batch, signed.get(checkpoint.size) ?? 'failed');
    case WitnessKind.LOG_WITNESS:
      return checkCosignature(evidence, trust);
    case WitnessKind.RFC3161:
      return checkTimestamp(evidence, trust);
    case WitnessKind.OPENTIMESTAMPS:
      return checkOpenTimestamps(evidence, trust, sources);
    case WitnessKind.EVM:
      return checkEvm(evidence, trust, sources);
    default: {
      const message = `what ${witness.name} (${kindName(witness.kind)}) said cannot be checked offline`;
      return { check: notChecked('witness.not_checkable', message) };
    }
  }
}

function kindName(kind: WitnessKind): string {
  return WitnessKindSchema.value[kind] === undefined ? 'unknown' : enumName(WitnessKindSchema, kind);
}
