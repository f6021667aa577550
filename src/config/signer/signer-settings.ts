/** Settings of `attest signer`. */
import { dirname, join, resolve } from 'node:path';
import { InvalidValue } from '../invalid-value.js';
import { isObject, type Members, parseJson, reportUnknownMembers } from '../members.js';
import { type LogLevel, readDataDir, readLogLevel, readOpsListener } from '../server-settings.js';
import { readSettingFile } from '../setting-files.js';
import { integer, path } from '../setting-types.js';
import { quote, type Settings, type SettingType } from '../settings.js';
import { type BackendConfig, readBackend } from './backends.js';
import { readKey, type SignerKeyConfig } from './keys.js';

/** Configuration of `attest signer`. */
export type SignerConfig = {
  /** Absolute path of the Unix domain socket, and its permissions. */
  readonly socketPath: string;
  readonly socketMode: number;
  /** Absolute path of the folder with the newest checkpoint that was signed of each log. */
  readonly historyDir: string;
  readonly opsHost: string;
  readonly opsPort: number;
  readonly logLevel: LogLevel;
  readonly backends: readonly BackendConfig[];
  readonly keys: readonly SignerKeyConfig[];
};

const MAX_BACKENDS = 16;
const MAX_KEYS = 64;
/** Bytes of a Unix domain socket's path: 108 on Linux, 104 elsewhere, with a zero at the end. */
const MAX_SOCKET_PATH = 103;

const socketPath: SettingType<string> = {
  expected: `the path of a Unix domain socket, absolute and of at most ${MAX_SOCKET_PATH - 3} bytes`,
  parse: (text) => {
    if (!text.startsWith('/') || text.includes('#') || text.includes('\0')) throw new InvalidValue();
    if (Buffer.byteLength(text) > MAX_SOCKET_PATH - 3) throw new InvalidValue();
    return text;
  },
};

const socketMode: SettingType<number> = {
  expected: 'permissions of the socket in octal that do not let everybody in, such as 0600 or 0660',
  parse: (text) => {
    if (!/^0?[0-7]{2}0$/.test(text)) throw new InvalidValue();
    return Number.parseInt(text, 8);
  },
};

type Document = { members: Readonly<Record<string, unknown>>; baseDir: string };

const document: SettingType<Document> = {
  expected: 'a JSON object with backends and keys, or the path of a file with one',
  secret: true,
  parse: (text) => {
    const isInline = /^\s*[[{]/.test(text);
    const members = parseJson(isInline ? text : readSettingFile(text));
    if (!isObject(members)) throw new InvalidValue('it is not a JSON object');
    return { members, baseDir: isInline ? '.' : dirname(text) };
  },
};

/** Libuv's threads, which make the calls to PKCS#11 modules. */
const threads = integer(1, 1024);
const DEFAULT_THREADS = 4;

/** Reads the settings of `attest signer`. */
export function readSignerConfig(settings: Settings): SignerConfig {
  const found: Document | undefined = settings.require('SIGNER_CONFIG', document);
  const { members, baseDir } = found ?? { members: {}, baseDir: '.' };
  const threadCount = settings.get('UV_THREADPOOL_SIZE', threads, DEFAULT_THREADS);
  const root: Members = { at: 'SIGNER_CONFIG', members, report: settings.report };
  reportUnknownMembers(root, ['backends', 'keys']);
  const isRead = found !== undefined;
  const backends = !isRead
    ? []
    : objectsOf(root, 'backends', MAX_BACKENDS).map(([name, object]) =>
        readBackend(name, object, { baseDir, threadCount }),
      );
  const keys = !isRead
    ? []
    : objectsOf(root, 'keys', MAX_KEYS).map(([name, object]) => readKey(name, object, backends));
  return {
    socketPath: settings.require('SIGNER_SOCKET', socketPath),
    socketMode: settings.get('SIGNER_SOCKET_MODE', socketMode, 0o600),
    historyDir: resolve(settings.get('SIGNER_HISTORY', path, join(readDataDir(settings), 'signer-history'))),
    ...readOpsListener(settings),
    logLevel: readLogLevel(settings),
    backends,
    keys,
  };
}

/** The objects of a member by name. Reports what is none, and a member that is missing, empty or too large. */
function objectsOf({ at, members, report }: Members, member: string, max: number): [string, Members][] {
  const value = members[member];
  const name = `${at}.${member}`;
  if (!isObject(value) || Object.keys(value).length === 0 || Object.keys(value).length > max) {
    const problem = value === undefined ? 'is not set' : 'is wrong';
    report({ name, problem, expected: `an object of 1 to ${max} objects by name` });
    return [];
  }
  return Object.entries(value).flatMap(([key, object]): [string, Members][] => {
    if (isObject(object)) return [[key, { at: `${name}[${quote(key)}]`, members: object, report }]];
    report({ name: `${name}[${quote(key)}]`, problem: 'is wrong', expected: 'an object' });
    return [];
  });
}
