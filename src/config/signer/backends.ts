/** The places that hold the keys of `attest signer`. */
import { resolve } from 'node:path';
import { InvalidValue } from '../invalid-value.js';
import { findInteger, findText, type Members, reportUnknownMembers, requireText } from '../members.js';
import { readSettingFile } from '../setting-files.js';
import { outboundUrl, path, plainText } from '../setting-types.js';
import type { SettingType } from '../settings.js';

type Common = {
  readonly name: string;
  /** The most requests that are open at once; others wait. */
  readonly inFlight: number;
};

/** A token behind a PKCS#11 module; `inFlight` is the number of sessions. */
export type Pkcs11Config = Common & {
  readonly kind: 'pkcs11';
  /** Absolute path of the module. */
  readonly module: string;
  readonly tokenLabel: string;
  /** The user PIN, and the file that it is from. */
  readonly pin: string;
  readonly pinFile: string;
};

/** AWS KMS, with the credentials that its SDK finds. */
export type AwsKmsConfig = Common & {
  readonly kind: 'aws-kms';
  /** By default what the SDK finds. */
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
};

/** Google Cloud KMS, with application default credentials. */
export type GcpKmsConfig = Common & { readonly kind: 'gcp-kms'; readonly endpoint: string };

/** A key vault, or a managed HSM, of Azure, with the credentials that its SDK finds. */
export type AzureKeyVaultConfig = Common & { readonly kind: 'azure-key-vault'; readonly url: string };

/** The transit engine of HashiCorp Vault or OpenBao. */
export type VaultTransitConfig = Common & {
  readonly kind: 'vault-transit';
  readonly url: string;
  readonly mount: string;
  readonly namespace: string | undefined;
  /** Absolute path of the file with the token, which is read again when it changes. */
  readonly tokenFile: string;
};

/** The settings of a backend, by kind. */
export type BackendConfig =
  | Pkcs11Config
  | AwsKmsConfig
  | GcpKmsConfig
  | AzureKeyVaultConfig
  | VaultTransitConfig;

/** What paths are relative to, and how many calls a PKCS#11 module gets at once. */
type Context = { baseDir: string; threadCount: number };

const MAX_IN_FLIGHT = 1_000;
const DEFAULT_IN_FLIGHT = 128;
const DEFAULT_SESSIONS = 4;
const GOOGLE = 'https://cloudkms.googleapis.com';
const COMMON = ['kind'];

const kind: SettingType<BackendConfig['kind']> = {
  expected: 'pkcs11, aws-kms, gcp-kms, azure-key-vault or vault-transit',
  parse: (text) => {
    if (!Object.hasOwn(READERS, text)) throw new InvalidValue();
    return text as BackendConfig['kind'];
  },
};

/** Keys and tokens go over https, or to this machine. */
const backendUrl: SettingType<string> = {
  expected: 'an https URL, or an http URL of this machine such as http://127.0.0.1:8200, without query',
  secret: true,
  parse: (text) => {
    const { protocol, hostname, search, href } = new URL(outboundUrl.parse(text));
    const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
    if (search !== '' || (protocol !== 'https:' && !isLocal)) throw new InvalidValue();
    return href.replace(/\/+$/, '');
  },
};

const pin: SettingType<string> = {
  expected: 'a file with the user PIN of the token on its first line',
  parse: (text) => {
    const [first = ''] = readSettingFile(text).split(/\r?\n/, 1);
    if (first === '') throw new InvalidValue('it is empty');
    return first;
  },
};

const segment: SettingType<string> = {
  expected: 'letters, digits and "-_./" without a "/" at the ends',
  parse: (text) => {
    if (!/^[\w.-]+(\/[\w.-]+)*$/.test(text) || /(^|\/)\.\.?(\/|$)/.test(text)) throw new InvalidValue();
    return text;
  },
};

type Reader = (object: Members, name: string, context: Context) => BackendConfig;

const READERS: Readonly<Record<BackendConfig['kind'], Reader>> = {
  pkcs11: readPkcs11,
  'aws-kms': (object, name) => {
    reportUnknownMembers(object, [...COMMON, 'in_flight', 'region', 'endpoint']);
    const region = findText(object, 'region', segment);
    return { kind: 'aws-kms', ...common(object, name), region, endpoint: endpointOf(object) };
  },
  'gcp-kms': (object, name) => {
    reportUnknownMembers(object, [...COMMON, 'in_flight', 'endpoint']);
    return { kind: 'gcp-kms', ...common(object, name), endpoint: endpointOf(object) ?? GOOGLE };
  },
  'azure-key-vault': (object, name) => {
    reportUnknownMembers(object, [...COMMON, 'in_flight', 'url']);
    return { kind: 'azure-key-vault', ...common(object, name), url: requireText(object, 'url', backendUrl) };
  },
  'vault-transit': (object, name, { baseDir }) => {
    reportUnknownMembers(object, [...COMMON, 'in_flight', 'url', 'mount', 'namespace', 'token_file']);
    return {
      kind: 'vault-transit',
      // Many go in one request.
      ...common(object, name, MAX_IN_FLIGHT),
      url: requireText(object, 'url', backendUrl),
      mount: findText(object, 'mount', segment) ?? 'transit',
      namespace: findText(object, 'namespace', segment),
      tokenFile: resolve(baseDir, requireText(object, 'token_file', path) ?? ''),
    };
  },
};

/** Reads a backend. Reports invalid members by path. */
export function readBackend(name: string, object: Members, context: Context): BackendConfig {
  const read: BackendConfig['kind'] | undefined = requireText(object, 'kind', kind);
  return READERS[read ?? 'aws-kms'](
    read === undefined ? { ...object, report: () => {} } : object,
    name,
    context,
  );
}

function readPkcs11(object: Members, name: string, { baseDir, threadCount }: Context): Pkcs11Config {
  reportUnknownMembers(object, [...COMMON, 'module', 'token_label', 'pin_file', 'sessions']);
  const sessions = findInteger(object, 'sessions', 1, MAX_IN_FLIGHT) ?? DEFAULT_SESSIONS;
  if (sessions > threadCount) {
    const expected = `at most ${threadCount}, or the environment variable UV_THREADPOOL_SIZE with as many threads`;
    object.report({ name: `${object.at}.sessions`, problem: `is ${sessions}`, expected });
  }
  const pinFile = resolve(baseDir, requireText(object, 'pin_file', path) ?? '');
  const read = { ...object, members: { pin_file: pinFile } };
  return {
    kind: 'pkcs11',
    name,
    inFlight: sessions,
    module: resolve(baseDir, requireText(object, 'module', path) ?? ''),
    tokenLabel: requireText(object, 'token_label', plainText(32)),
    pin: object.members.pin_file === undefined ? '' : requireText(read, 'pin_file', pin),
    pinFile,
  };
}

function common(object: Members, name: string, fallback = DEFAULT_IN_FLIGHT): Common {
  return { name, inFlight: findInteger(object, 'in_flight', 1, MAX_IN_FLIGHT) ?? fallback };
}

function endpointOf(object: Members): string | undefined {
  return findText(object, 'endpoint', backendUrl);
}
