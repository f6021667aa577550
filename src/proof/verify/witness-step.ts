/** Step 7: what each witness said, held against the checkpoint it said it about. */
import { getOption } from '@bufbuild/protobuf';
import { spelling } from '../../../gen/attestation/options/v1/options_pb.js';
import { type BundleWitness, WitnessKind, WitnessKindSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME } from '../bundle.js';
import { checkpointDigest } from '../checkpoint.js';
import { verifyCosignature } from '../cosignature.js';
import { fromHex, fromUtf8 } from '../encoding.js';
import { encodeSignatureLine, parseNote, parseSignatureLines } from '../note.js';
import { TimestampError } from '../rfc3161/error.js';
import { type VerifiedTimestamp, verifyTimestamp } from '../rfc3161.js';
import type { BundleFacts, CheckpointFacts } from './facts.js';
import { problemOf } from './read-json.js';
import { type Check, failed, notChecked, passed } from './report.js';
import { isValidAt, type Trust, type TrustedTimestampAuthority } from './trust.js';

/** What was found about one witness. `time` is when it vouched, if it says and is to be believed. */
export type WitnessFinding = Check & {
  readonly name: string;
  /** As the REST surface spells it. */
  readonly kind: string;
  readonly treeSize: number;
  readonly time?: Date;
  /** Who runs it, where the trust roots say; `self` is whoever runs the service. */
  readonly operator?: string;
};

type Finding = { readonly check: Check; readonly time?: Date; readonly operator?: string };

/** Checks every witness of the bundle against the trust roots. A kind that needs more than the bundle is not checked. */
export async function checkWitnesses(facts: BundleFacts, trust: Trust): Promise<WitnessFinding[]> {
  return Promise.all(
    facts.witnesses.map(async (witness, i) => {
      const path = `/witnesses/${i}`;
      const checkpoint = facts.checkpoints.find(({ size }) => BigInt(size) === witness.treeSize);
      const { check, ...said } =
        checkpoint === undefined
          ? {
              check: failed(
                'witness.no_checkpoint',
                `${witness.name} vouches for a checkpoint that is not here`,
                `${path}/tree_size`,
              ),
            }
          : await checkEvidence(witness, checkpoint, trust, path);
      return {
        ...check,
        ...said,
        name: witness.name,
        kind: kindName(witness.kind),
        treeSize: Number(witness.treeSize),
      };
    }),
  );
}

function checkEvidence(
  witness: BundleWitness,
  checkpoint: CheckpointFacts,
  trust: Trust,
  path: string,
): Finding | Promise<Finding> {
  switch (witness.kind) {
    case WitnessKind.TRANSPARENCY_LOG:
      return { check: checkLogEvidence(witness, checkpoint, path) };
    case WitnessKind.LOG_WITNESS:
      return checkCosignature(witness, checkpoint, trust, path);
    case WitnessKind.RFC3161:
      return checkTimestamp(witness, checkpoint, trust, path);
    default:
      return {
        check: notChecked(
          'witness.not_checkable',
          `what ${witness.name} (${kindName(witness.kind)}) said cannot be checked offline`,
        ),
      };
  }
}

/** The log's evidence is its signed checkpoint, which step 6 verifies; a copy of it here must be the same. */
function checkLogEvidence(
  { name, evidence }: BundleWitness,
  checkpoint: CheckpointFacts,
  path: string,
): Check {
  if (name !== checkpoint.origin && name !== LOG_WITNESS_NAME) {
    return failed('witness.wrong_name', 'the log goes by another name', `${path}/name`);
  }
  return evidence.length === 0 || isSameCheckpoint(evidence, checkpoint)
    ? passed('witness.verified', `${name} signed the checkpoint`)
    : failed('witness.not_in_note', `the evidence of ${name} is not the checkpoint`, `${path}/evidence`);
}

/** The same text, and no signature line that the bundle's note does not have: cosignatures may have joined since. */
function isSameCheckpoint(evidence: Uint8Array, { note }: CheckpointFacts): boolean {
  try {
    const copy = parseNote(fromUtf8(evidence));
    const lines = note.signatures.map(encodeSignatureLine);
    return (
      copy.text === note.text && copy.signatures.every((line) => lines.includes(encodeSignatureLine(line)))
    );
  } catch {
    return false;
  }
}

async function checkCosignature(
  { name, evidence }: BundleWitness,
  { note }: CheckpointFacts,
  trust: Trust,
  path: string,
): Promise<Finding> {
  try {
    const inNote = note.signatures.map(encodeSignatureLine);
    const lines = parseSignatureLines(fromUtf8(evidence));
    if (!lines.every((line) => inNote.includes(encodeSignatureLine(line)))) {
      return {
        check: failed(
          'witness.not_in_note',
          `the checkpoint lacks the cosignature of ${name}`,
          `${path}/evidence`,
        ),
      };
    }
    const keys = trust.cosigners.filter((cosigner) => cosigner.name === name);
    if (keys.length === 0) return { check: unknownWitness(name) };
    const pairs = keys.flatMap(({ key }) => lines.map((line) => verifyCosignature(note.text, line, key)));
    const times = (await Promise.all(pairs)).filter((time) => time !== undefined);
    return times.length === 0
      ? {
          check: failed(
            'witness.bad_cosignature',
            `${name} did not cosign the checkpoint`,
            `${path}/evidence`,
          ),
        }
      : verifiedAt(name, new Date(Math.min(...times) * 1000), undefined);
  } catch (error) {
    return {
      check: failed('witness.malformed', `the evidence of ${name}: ${problemOf(error)}`, `${path}/evidence`),
    };
  }
}

/** An authority may have several chains, retired ones among them: one that was trusted when it stamped is enough. */
async function checkTimestamp(
  witness: BundleWitness,
  checkpoint: CheckpointFacts,
  trust: Trust,
  path: string,
): Promise<Finding> {
  const authorities = trust.authorities.filter(({ name }) => name === witness.name);
  if (authorities.length === 0) return { check: unknownWitness(witness.name) };
  const findings = await Promise.all(
    authorities.map((authority) => checkTimestampBy(authority, witness, checkpoint, path)),
  );
  const closest = findings.find(({ check }) => check.code !== 'witness.rfc3161.signer_untrusted');
  return findings.find(({ check }) => check.status === 'passed') ?? closest ?? findings[0]!;
}

async function checkTimestampBy(
  authority: TrustedTimestampAuthority,
  witness: BundleWitness,
  { note }: CheckpointFacts,
  path: string,
): Promise<Finding> {
  const fail = (code: string, message: string, member = 'evidence') => ({
    check: failed(`witness.${code}`, `${witness.name}: ${message}`, `${path}/${member}`),
  });
  try {
    const nonce = nonceOf(witness);
    const stamp = await verifyTimestamp({
      response: witness.evidence,
      digest: checkpointDigest(note.text),
      chains: [authority.chain],
      ...(nonce && { nonce }),
    });
    if (!isValidAt(authority, stamp.genTime)) {
      return fail('not_trusted_then', `was not trusted at ${stamp.genTime.toISOString()}`);
    }
    if (!agrees(witness, stamp))
      return fail('detail_mismatch', 'detail is not what the time stamp says', 'detail');
    return verifiedAt(witness.name, stamp.genTime, authority.operator);
  } catch (error) {
    return error instanceof TimestampError
      ? fail(`rfc3161.${error.code}`, error.message)
      : fail('malformed', 'the time stamp cannot be read');
  }
}

/** `detail` is an account for readers and proves nothing, but it must not contradict the evidence. */
function agrees({ detail = {} }: BundleWitness, stamp: VerifiedTimestamp): boolean {
  const said = new Map(Object.entries(detail));
  const told = { policy_oid: stamp.policyOid, serial: stamp.serial, gen_time: stamp.genTime.toISOString() };
  return Object.entries(told).every(([member, value]) => !said.has(member) || said.get(member) === value);
}

function nonceOf({ detail = {} }: BundleWitness): Uint8Array | undefined {
  const nonce = Object.hasOwn(detail, 'nonce') ? detail.nonce : undefined;
  return nonce === undefined ? undefined : fromHex(String(nonce));
}

function verifiedAt(name: string, time: Date, operator: string | undefined): Finding {
  const check = passed('witness.verified', `${name} vouched at ${time.toISOString()}`);
  return { check, time, ...(operator !== undefined && { operator }) };
}

function unknownWitness(name: string): Check {
  return notChecked('witness.unknown', `${name} is not in the trust roots`);
}

function kindName(kind: WitnessKind): string {
  const value = WitnessKindSchema.values.find(({ number }) => number === kind);
  return value === undefined ? 'unknown' : getOption(value, spelling);
}
