/** The stores of objects that settings name: a bucket of S3 or Google Cloud Storage, or a container of Azure Blob Storage. */
import { resolve } from 'node:path';
import { InvalidValue } from './invalid-value.js';
import { path } from './setting-types.js';
import type { SettingType } from './settings.js';

/**
 * A bucket or container, and the prefix of the objects' names in it, without slashes at its ends. `options` are those of
 * the URL's query; without credentials among them the SDK of the store finds the operator's.
 */
export type ObjectStorage = {
  readonly kind: Kind;
  readonly bucket: string;
  readonly prefix: string;
  readonly options: Readonly<Record<string, string>>;
};

type Kind = keyof typeof OPTIONS;

/** The options of a scheme, as the destinations of exports name them. */
const OPTIONS = {
  s3: ['region', 'endpoint', 'access_key_id', 'secret_access_key'],
  gs: [],
  az: ['account_url', 'sas_token'],
} as const;
const URLS: readonly string[] = ['endpoint', 'account_url'];

const BUCKET = /^[a-z0-9][a-z0-9._-]{1,221}$/;
const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$/;
const MAX_PREFIX = 512;

/** Also a mistyped one, such as `s3:/bucket`: no folder is called so. */
function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\//i.test(text);
}

/** `s3://bucket/prefix?region=…`, `gs://bucket/prefix`, `az://container/prefix?account_url=…`. */
export const objectStorage: SettingType<ObjectStorage> = {
  expected: 's3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX?account_url=URL',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (!/^(?:s3|gs|az):\/\//i.test(text) || !URL.canParse(text)) throw new InvalidValue();
    const url = new URL(text);
    const kind = url.protocol.slice(0, -1) as Kind;
    if (url.username !== '' || url.password !== '' || url.port !== '' || url.hash !== '')
      throw new InvalidValue('it has a user, a port or a fragment');
    if (!BUCKET.test(url.hostname)) throw new InvalidValue('it names no bucket or container');
    const options = readOptions(kind, url.searchParams);
    if (kind === 'az' && options.account_url === undefined) throw new InvalidValue('it lacks account_url');
    return { kind, bucket: url.hostname, prefix: readPrefix(url.pathname), options };
  },
};

/** A folder, by its absolute path, or a store of objects. */
export type Storage = { readonly folder: string } | { readonly storage: ObjectStorage };

/** The path of a folder, relative to the working directory, or the URL of a store of objects. */
export const storage: SettingType<Storage> = {
  expected: `the path of a folder, or ${objectStorage.expected}`,
  secret: true,
  fromFile: true,
  parse: (text) =>
    isUrl(text) ? { storage: objectStorage.parse(text) } : { folder: resolve(path.parse(text)) },
};

function readPrefix(path: string): string {
  const prefix = path.replace(/^\/|\/$/g, '');
  const isPlain = prefix === '' || prefix.split('/').every((segment) => SEGMENT.test(segment));
  if (!isPlain || prefix.length > MAX_PREFIX)
    throw new InvalidValue(
      'its prefix has other characters than letters, digits, -, _ and ., or is too long',
    );
  return prefix;
}

function readOptions(kind: Kind, query: URLSearchParams): Record<string, string> {
  const known: readonly string[] = OPTIONS[kind];
  const options: Record<string, string> = {};
  for (const [name, value] of query) {
    if (!known.includes(name))
      throw new InvalidValue(`${kind}:// has the options ${known.join(', ') || '(none)'}`);
    if (name in options) throw new InvalidValue(`it has ${name} twice`);
    if (URLS.includes(name) && !/^https?:\/\//.test(value)) throw new InvalidValue(`${name} is no URL`);
    options[name] = value;
  }
  return options;
}
