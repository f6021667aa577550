/** A witness of kind `log_witness`: a C2SP witness that cosigns checkpoints (tlog-witness). */
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { ED25519_NOTE_KEY, encodeVerifierKey, type NoteKey, parseVerifierKey } from '../../proof/log/note.js';
import { InvalidValue } from '../invalid-value.js';
import { reportUnknownMembers, requireText, requireTexts } from '../members.js';
import { outboundUrl } from '../setting-types.js';
import { quote, type SettingType } from '../settings.js';
import { COMMON_MEMBERS, type CommonWitnessConfig, readCommon, type WitnessEntry } from './entry.js';

/** A C2SP witness. */
export type LogWitnessConfig = CommonWitnessConfig & {
  readonly kind: WitnessKind.LOG_WITNESS;
  /** Its submission prefix. */
  readonly url: string;
  /** The keys that it signs with; usually one, or one of each type. */
  readonly verifierKeys: readonly NoteKey[];
};

const MEMBERS = [...COMMON_MEMBERS, 'url', 'verifier_key'];

const MAX_KEYS = 8;

/** The verifier key of a witness. */
export const cosignerKey: SettingType<NoteKey> = {
  expected: 'a verifier key of cosignatures, <name>+<key id>+<base64>, as its operator publishes it',
  parse: (text) => {
    const key = parseKey(text);
    if (key.type === ED25519_NOTE_KEY) throw new InvalidValue('it is the key of a log, not of a witness');
    return key;
  },
};

/** Reads the members of a C2SP witness; `verifier_key` is one key or an array of them. */
export function readLogWitness(entry: WitnessEntry): LogWitnessConfig {
  reportUnknownMembers(entry, MEMBERS);
  const verifierKeys = requireTexts(entry, 'verifier_key', cosignerKey, MAX_KEYS);
  reportRepeatedKeys(entry, verifierKeys);
  return {
    ...readCommon(entry),
    kind: WitnessKind.LOG_WITNESS,
    url: requireText(entry, 'url', outboundUrl),
    verifierKeys,
  };
}

function reportRepeatedKeys({ at, report }: WitnessEntry, keys: readonly NoteKey[]): void {
  const texts = keys.map(encodeVerifierKey);
  const repeated = texts.find((text, i) => texts.indexOf(text) !== i);
  if (repeated === undefined) return;
  report({ name: `${at}.verifier_key`, problem: `has ${quote(repeated)} twice`, expected: 'each key once' });
}

function parseKey(text: string): NoteKey {
  try {
    return parseVerifierKey(text);
  } catch (error) {
    if (error instanceof FormatError) throw new InvalidValue(error.message);
    throw error;
  }
}
