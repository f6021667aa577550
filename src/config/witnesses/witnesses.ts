/** WITNESSES: external witnesses, as JSON or as the path of a JSON file. */
import { dirname } from 'node:path';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { InvalidValue } from '../invalid-value.js';
import { isObject, parseJson, requireText } from '../members.js';
import { readSettingFile } from '../setting-files.js';
import { quote, type Settings, type SettingType } from '../settings.js';
import type { WitnessEntry } from './entry.js';
import { type EvmConfig, evmPrivateKey, readEvm, reportSharedAccounts } from './evm.js';
import { type LogWitnessConfig, readLogWitness } from './log-witness.js';
import { type OpenTimestampsConfig, readOpenTimestamps } from './opentimestamps.js';
import { type Rfc3161Config, readRfc3161 } from './rfc3161.js';
import type { QuorumConfig } from './witness-policy.js';

/** The settings of a witness, by kind. */
export type WitnessConfig = Rfc3161Config | LogWitnessConfig | OpenTimestampsConfig | EvmConfig;

type Problem = Parameters<Settings['report']>[0];

type ReadWitness = (entry: WitnessEntry) => WitnessConfig;

const KINDS: ReadonlyMap<string, ReadWitness> = new Map<string, ReadWitness>([
  ['rfc3161', readRfc3161],
  ['log_witness', readLogWitness],
  ['opentimestamps', readOpenTimestamps],
  ['evm', readEvm],
]);

const witnessKind: SettingType<ReadWitness> = {
  expected: [...KINDS.keys()].join(', '),
  parse: (text) => {
    const read = KINDS.get(text);
    if (read === undefined) throw new InvalidValue();
    return read;
  },
};

const MAX_WITNESSES = 64;

const witnessList: SettingType<{ entries: unknown[]; baseDir: string }> = {
  expected: 'a JSON array of witnesses, or the path of a file with one',
  secret: true,
  parse: (text) => {
    const isInline = /^\s*[[{]/.test(text);
    const entries = parseJson(isInline ? text : readSettingFile(text));
    if (!Array.isArray(entries)) throw new InvalidValue('it is not a JSON array');
    if (entries.length > MAX_WITNESSES) throw new InvalidValue(`it has more than ${MAX_WITNESSES} witnesses`);
    return { entries, baseDir: isInline ? '.' : dirname(text) };
  },
};

/** Reads WITNESSES. Reports invalid members by path, such as `WITNESSES[0].every`. */
export function readWitnesses(settings: Settings, policy: readonly QuorumConfig[]): WitnessConfig[] {
  const quorumMembers = new Set(policy.flatMap(({ members }) => members));
  const { entries, baseDir } = settings.get('WITNESSES', witnessList, { entries: [], baseDir: '.' });
  const evmKey = settings.find('EVM_PRIVATE_KEY', evmPrivateKey);
  const shared = { baseDir, quorumMembers, evmKey, report: settings.report };
  const witnesses = entries.map((members, index) => {
    const at = `WITNESSES[${index}]`;
    if (isObject(members)) return readWitness({ ...shared, at, members });
    settings.report({ name: at, problem: 'is not an object', expected: 'an object with name, kind and url' });
    return undefined;
  });
  const read = witnesses.filter((witness) => witness !== undefined);
  reportRepeatedNames(settings, read);
  reportTooManyCosigners(settings, read);
  reportTooManyStamps(settings, read);
  reportSharedAccounts(
    settings,
    read.filter((witness) => witness.kind === WitnessKind.EVM),
  );
  return read;
}

/** Time for an attempt that times out and its retry. */
const RETRY_MARGIN_MS = 60_000;
/** The time that a calendar may need until a Bitcoin block has its commitment. */
const BITCOIN_MS = 12 * 60 * 60_000;

/**
 * Reports required witnesses, and quorums, whose interval is too long: a batch sealed right after an attestation would
 * reach its deadline before the next one.
 */
export function reportInfrequentWitnesses(
  { report }: Settings,
  witnesses: readonly WitnessConfig[],
  policy: readonly QuorumConfig[],
  deadlineMs: number,
): void {
  const isSlow = ({ kind }: WitnessConfig) => kind === WitnessKind.OPENTIMESTAMPS && deadlineMs < BITCOIN_MS;
  const isRare = ({ everyMs }: WitnessConfig) => everyMs > 0 && everyMs + RETRY_MARGIN_MS > deadlineMs;
  const late = witnesses.filter((witness) => isSlow(witness) || isRare(witness));
  for (const witness of late.filter(({ required }) => required)) {
    const name = quote(String(witness.name));
    report(isSlow(witness) ? tooSlow(name) : tooRare(name));
  }
  for (const { threshold, members } of policy) {
    const inTime = members.filter((member) => !late.some(({ name }) => name === member));
    if (inTime.length >= threshold) continue;
    const problem = `needs ${threshold} of ${members.join(', ')}, which take longer than WITNESS_DEADLINE`;
    const expected = 'an "every" that is at least a minute shorter, and for opentimestamps 12h or more';
    report({ name: 'WITNESS_POLICY', problem, expected });
  }
}

function tooRare(name: string): Problem {
  return {
    name: 'WITNESSES',
    problem: `has an "every" for ${name}, which is required, that is too long for WITNESS_DEADLINE`,
    expected: 'an "every" that is at least a minute shorter, or "required": false',
  };
}

function tooSlow(name: string): Problem {
  return {
    name: 'WITNESSES',
    problem: `requires ${name}, but Bitcoin takes hours, longer than WITNESS_DEADLINE`,
    expected: '"required": false, or a WITNESS_DEADLINE of at least 12h',
  };
}

function readWitness(entry: WitnessEntry): WitnessConfig | undefined {
  const read: ReadWitness | undefined = requireText(entry, 'kind', witnessKind);
  return read?.(entry);
}

function reportRepeatedNames({ report }: Settings, witnesses: readonly WitnessConfig[]): void {
  const names = witnesses.map(({ name }) => name);
  const repeated = names.filter((name, index) => name !== undefined && names.indexOf(name) !== index);
  for (const name of new Set(repeated)) {
    report({ name: 'WITNESSES', problem: `has more than one ${quote(name)}`, expected: 'unique names' });
  }
}

/** Verifiers read at least 16 signatures of a note (C2SP signed-note). The log's own may be two. */
const MAX_COSIGNATURES = 14;

function reportTooManyCosigners({ report }: Settings, witnesses: readonly WitnessConfig[]): void {
  const keys = witnesses.flatMap((witness) => ('verifierKeys' in witness ? witness.verifierKeys : []));
  if (keys.length <= MAX_COSIGNATURES) return;
  const expected = `at most ${MAX_COSIGNATURES} of all witnesses`;
  report({ name: 'WITNESSES', problem: `has ${keys.length} verifier keys`, expected });
}

/** Each bundle waits for all of them, and verifiers read 16 stamps, those of former authorities too. */
const MAX_STAMPS = 4;

function reportTooManyStamps({ report }: Settings, witnesses: readonly WitnessConfig[]): void {
  const stamping = witnesses.filter((one) => 'stampSignatures' in one && one.stampSignatures).length;
  if (stamping <= MAX_STAMPS) return;
  const problem = `has ${stamping} witnesses with "stamp_signatures"`;
  report({ name: 'WITNESSES', problem, expected: `at most ${MAX_STAMPS}` });
}
