/** Types of settings: parser and description of a value. */
import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { InvalidValue } from './invalid-value.js';
import type { SettingType } from './settings.js';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** An integer from `min` to `max`, inclusive. */
export function integer(min: number, max: number): SettingType<number> {
  return {
    expected: `a whole number from ${min} to ${max}`,
    parse: (text) => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (!(value >= min && value <= max)) throw new InvalidValue();
      return value;
    },
  };
}

/** A TCP port to listen on; 0 picks a free one. */
export const port: SettingType<number> = {
  ...integer(0, 65_535),
  expected: 'a port from 0 to 65535, where 0 picks a free one',
};

/** A duration in milliseconds: an integer and a unit (`500ms`, `1s`, `5m`, `1h`, `30d`); bounds in the same form. */
export function duration(min: string, max: string): SettingType<number> {
  return {
    expected: `a duration from ${min} to ${max}: a whole number and ms, s, m, h or d`,
    parse: (text) => {
      const valueMs = parseDurationMs(text);
      if (valueMs === undefined || valueMs < parseDurationMs(min)! || valueMs > parseDurationMs(max)!) {
        throw new InvalidValue();
      }
      return valueMs;
    },
  };
}

function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** One of `words`. */
export function oneOf<T extends string>(...words: readonly T[]): SettingType<T> {
  return {
    expected: `one of ${words.join(', ')}`,
    parse: (text) => {
      const word = words.find((candidate) => candidate === text);
      if (word === undefined) throw new InvalidValue();
      return word;
    },
  };
}

/** `true` or `false`. */
export const bool: SettingType<boolean> = {
  expected: 'true or false',
  parse: (text) => {
    if (text !== 'true' && text !== 'false') throw new InvalidValue();
    return text === 'true';
  },
};

/** Text without control characters, of at most `maxLength` UTF-16 code units. */
export function plainText(maxLength: number): SettingType<string> {
  return {
    expected: `at most ${maxLength} characters without line breaks`,
    parse: (text) => {
      if (text.length > maxLength || /\p{Cc}/u.test(text)) throw new InvalidValue();
      return text;
    },
  };
}

/** A file system path. */
export const path: SettingType<string> = {
  expected: 'a path',
  parse: (text) => {
    if (text.includes('\0') || text.length > 4096) throw new InvalidValue();
    return text;
  },
};

/** An existing directory. */
export const directory: SettingType<string> = {
  expected: 'a directory',
  parse: (text) => {
    if (!statSync(text, { throwIfNoEntry: false })?.isDirectory())
      throw new InvalidValue('it does not exist');
    return text;
  },
};

/** Folders in which programs are looked for, as PATH has them. */
export const searchPath: SettingType<string> = { expected: 'folders', parse: (text) => text };

/** A lower-case host name without a port. Its last label is not numeric, so it cannot be an IPv4 address. */
export const hostName: SettingType<string> = {
  expected: 'a bare host name in lower case, such as log.example.com',
  parse: (text) => {
    if (text.length > 240 || !isHostName(text)) throw new InvalidValue();
    return text;
  },
};

/** An IP address or host name to listen on. */
export const bindAddress: SettingType<string> = {
  expected: 'an IP address or host name to listen on, such as 127.0.0.1 or 0.0.0.0',
  parse: (text) => {
    if (isIP(text) === 0 && !isHostName(text.toLowerCase())) throw new InvalidValue();
    return text;
  },
};

function isHostName(text: string): boolean {
  const labels = text.split('.');
  return (
    labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) &&
    !/^\d+$/.test(labels.at(-1)!)
  );
}

/** A public base URL of the service: http or https, without user, query or fragment. Trailing slashes are removed. */
export const publicUrl: SettingType<string> = {
  expected: 'an http or https URL without user, query or fragment, such as https://attest.example.com',
  secret: true,
  parse: (text) => {
    const url = parseHttpUrl(text);
    if (url.search !== '' || url.hash !== '') throw new InvalidValue('it has a query or fragment');
    return url.href.replace(/\/+$/, '');
  },
};

/** A URL that this service calls: http or https, without user or fragment. Its query may hold a secret. */
export const outboundUrl: SettingType<string> = {
  expected: 'an http or https URL without user or fragment',
  secret: true,
  parse: (text) => {
    const url = parseHttpUrl(text);
    if (url.hash !== '') throw new InvalidValue('it has a fragment');
    return url.href;
  },
};

function parseHttpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new InvalidValue('it is not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new InvalidValue('it is not http or https');
  if (url.username !== '' || url.password !== '') throw new InvalidValue('it has a user');
  return url;
}

/** Comma-separated web origins, or `*` for all. */
export const origins: SettingType<string[]> = {
  expected: '* or comma-separated web origins, such as https://app.example.com',
  parse: (text) => {
    const list = text.split(',').map((origin) => origin.trim());
    const isOrigin = (origin: string) => URL.canParse(origin) && new URL(origin).origin === origin;
    if (text !== '*' && !list.every((origin) => isOrigin(origin) && origin !== 'null'))
      throw new InvalidValue();
    return list;
  },
};

/** Comma-separated issuers of OpenID Connect tokens, exactly as their tokens name them. */
export const issuers: SettingType<string[]> = {
  expected: 'comma-separated https URLs without query and fragment, such as https://gitlab.example.com',
  parse: (text) => {
    const list = text.split(',').map((issuer) => issuer.trim());
    if (!list.every((issuer) => /^https:[^?#]+$/.test(issuer) && URL.canParse(issuer)))
      throw new InvalidValue();
    return list;
  },
};

/** Comma-separated names of buckets and hosts. */
export const names: SettingType<string[]> = {
  expected: 'comma-separated names of buckets, and hosts of storage accounts',
  parse: (text) => {
    const list = text.split(',').map((name) => name.trim());
    if (!list.every((name) => /^[a-z0-9][a-z0-9._-]{1,253}$/.test(name))) throw new InvalidValue();
    return list;
  },
};

/** Comma-separated IP addresses and CIDR networks, such as `10.0.0.0/8` or `::1`; `none` for an empty list. */
export const cidrRanges: SettingType<string[]> = {
  expected: 'none, or comma-separated IP addresses and CIDR networks, such as 10.0.0.0/8',
  parse: (text) => {
    const ranges = text === 'none' ? [] : text.split(',').map((range) => range.trim());
    if (!ranges.every(isCidr)) throw new InvalidValue();
    return ranges;
  },
};

function isCidr(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const maxBits = isIP(address) === 4 ? 32 : 128;
  const isPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= maxBits);
  return isIP(address) !== 0 && rest.length === 0 && isPrefix;
}

/** A bearer token (RFC 6750) of at least 24 characters. */
export const adminToken: SettingType<string> = {
  expected: '24 to 256 letters, digits or any of -._~+/=',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (!/^[A-Za-z0-9\-._~+/=]{24,256}$/.test(text)) throw new InvalidValue();
    return text;
  },
};
