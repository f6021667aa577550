/** Settings of `attest witness`. */
import { join, resolve } from 'node:path';
import { FormatError } from '../proof/bytes/format-error.js';
import {
  COSIGNATURE_V1_KEY,
  ML_DSA_44_NOTE_KEY,
  type NoteKey,
  noteKey,
  parseVerifierKey,
} from '../proof/log/note.js';
import { type CosignerKey, parseCosignerKey } from '../server/keys/cosigner-key.js';
import { InvalidValue } from './invalid-value.js';
import { type OpenLimits, readOpenLimits } from './open-limits.js';
import type { Listeners, LogLevel } from './server-settings.js';
import { readDataDir, readListeners, readLogLevel } from './server-settings.js';
import { readSettingFile } from './setting-files.js';
import { path } from './setting-types.js';
import type { Settings, SettingType } from './settings.js';
import { readTlsFiles, type TlsFiles } from './tls-files.js';

/** A key that cosigns, and how others know it. */
type NamedCosigner = CosignerKey & { readonly key: NoteKey };

/** Configuration of `attest witness`. */
export type CosignerConfig = Listeners & {
  /** Absolute path of the directory with the newest cosigned checkpoint of each log. */
  readonly historyDir: string;
  readonly cosigners: readonly NamedCosigner[];
  /** Keys of the logs by their origins, which are the keys' names. */
  readonly logKeys: readonly NoteKey[];
  readonly logLevel: LogLevel;
  readonly tls: TlsFiles | undefined;
  readonly openLimits: OpenLimits;
};

const MAX_LOGS = 1_024;

/** The signature type of each kind of key. */
const TYPES = { ed25519: COSIGNATURE_V1_KEY, 'ml-dsa-44': ML_DSA_44_NOTE_KEY } as const;

const witnessName: SettingType<string> = {
  expected: 'the name of this witness: a URL without its scheme, such as witness.example.com/w1',
  parse: (text) => {
    orInvalid(() => noteKey(text, new Uint8Array()));
    if (Buffer.byteLength(text) > 255) throw new InvalidValue();
    return text;
  },
};

const keyFiles: SettingType<CosignerKey[]> = {
  expected:
    'comma-separated files, each with an Ed25519 or ML-DSA-44 private key in PKCS#8 PEM, one of each at most',
  parse: (text) => {
    const keys = text.split(',').map(readKeyFile);
    const algorithms = new Set(keys.map(({ algorithm }) => algorithm));
    if (algorithms.size < keys.length) throw new InvalidValue('two keys are of one algorithm');
    return keys;
  },
};

const logKeys: SettingType<NoteKey[]> = {
  expected: 'verifier keys of logs, one a line, or the path of a file with them',
  parse: (text) => {
    const isInline = /^[^+\n]+\+[0-9a-f]{8}\+/.test(text);
    const lines = (isInline ? text : readSettingFile(text)).split('\n').map((line) => line.trim());
    const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
    if (keys.length === 0) throw new InvalidValue('it names no log');
    if (keys.length > MAX_LOGS) throw new InvalidValue(`it has more than ${MAX_LOGS} keys`);
    return keys.map((line) => orInvalid(() => parseVerifierKey(line)));
  },
};

/** Reads the settings of `attest witness`. */
export function readCosignerConfig(settings: Settings): CosignerConfig {
  const name = settings.require('WITNESS_NAME', witnessName);
  const keys: readonly CosignerKey[] | undefined = settings.require('WITNESS_KEY_FILE', keyFiles);
  const dataDir = readDataDir(settings);
  return {
    ...readListeners(settings, '0.0.0.0'),
    historyDir: resolve(settings.get('WITNESS_HISTORY', path, join(dataDir, 'witness-history'))),
    cosigners: name === undefined ? [] : (keys ?? []).map((key) => namedCosigner(name, key)),
    logKeys: settings.require('WITNESS_LOGS', logKeys),
    logLevel: readLogLevel(settings),
    tls: readTlsFiles(settings, path),
    openLimits: readOpenLimits(settings),
  };
}

/** A cosigner's key under the name of its witness. */
export function namedCosigner(name: string, key: CosignerKey): NamedCosigner {
  return { ...key, key: noteKey(name, key.publicKey, TYPES[key.algorithm]) };
}

function readKeyFile(file: string): CosignerKey {
  const pem = readSettingFile(file.trim());
  try {
    return parseCosignerKey(pem);
  } catch (error) {
    throw new InvalidValue(`${file}: ${(error as Error).message}`);
  }
}

function orInvalid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) throw new InvalidValue(error.message);
    throw error;
  }
}
