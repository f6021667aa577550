/** Client settings of the command line: from the environment, or from credentials.json in the data directory. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { EnvironmentName } from '../protocol/environment.js';
import { parseApiKey } from '../server/keys/api-key.js';
import { InvalidValue } from './invalid-value.js';
import { readSettingFile } from './setting-files.js';
import { adminToken, outboundUrl, path, plainText, publicUrl } from './setting-types.js';
import { type Env, openSettings, type Settings, type SettingType } from './settings.js';

/** Base URL and API key or token, each with the setting or file that it comes from. */
type ClientConfig = {
  readonly baseUrl: string;
  readonly urlFrom: string;
  readonly keyFrom: string;
} & (
  | { readonly apiKey: string; readonly token?: never }
  | { readonly token: JobToken; readonly apiKey?: never }
);

/** The token of a CI job: as it is, or where GitHub Actions issues it. */
export type JobToken = {
  /** The project to act for. */
  readonly projectId: string | undefined;
} & (
  | { readonly text: string }
  | { readonly requestUrl: string; readonly requestToken: string; readonly audience: string }
);

/** An address with the API key for it, which is sent to no other address. `from` names where they are kept. */
export type KeptKey = {
  readonly from: string;
  readonly baseUrl: string;
  readonly verifyUrl: string;
  readonly apiKey: string;
};

/** Finds the profile to use. One that was asked for by name comes before any credentials. */
export type ProfileSource = { readonly isNamed: boolean; readonly find: () => KeptKey | undefined };

/** Base URL and token of the admin API. */
type AdminConfig = { readonly baseUrl: string; readonly adminToken: string };

/** Where trust roots are published, and the setting or file that names it. */
type VerifySource = { readonly url: string; readonly from: string };

/** Content of `<data dir>/credentials.json`. */
type Credentials = {
  file: string;
  baseUrl: string;
  /** Set if the admin API has its own listener. */
  adminUrl: string | undefined;
  verifyUrl: string;
  live: string;
  test: string;
  /** Missing in credentials for submitting only. */
  adminToken: string | undefined;
};

/** An API key. Errors do not quote it. */
export const apiKey: SettingType<string> = {
  expected: 'an API key, svc_live_... or svc_test_...',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (parseApiKey(text) === undefined) throw new InvalidValue('it is cut off or mistyped');
    return text;
  },
};

/** The address where none is set. */
const MISSING_URL = { ...publicUrl, expected: `${publicUrl.expected}; \`attest login\` keeps one` };

/**
 * Reads ATTEST_URL and ATTEST_API_KEY, else a profile, else the credentials in DATA_DIR; with DATA_DIR set, these before a
 * profile without a name. A kept key is used only with its own address. Without a key takes the token of the CI job.
 * Throws ConfigError.
 */
export function readClientConfig(
  env: Env,
  environment: EnvironmentName,
  profile: ProfileSource,
): ClientConfig {
  const settings = openSettings(env);
  const url = settings.find('ATTEST_URL', publicUrl);
  const key = settings.find('ATTEST_API_KEY', apiKey);
  const isComplete = url !== undefined && key !== undefined;
  const kept = isComplete ? undefined : findKept(settings, { environment, profile, url });
  settings.assertValid();
  if (url !== undefined && key === undefined && kept === undefined) {
    const job = findJobToken(settings, url);
    if (job !== undefined) return { baseUrl: url, urlFrom: 'ATTEST_URL', ...job };
    reportOtherAddress(settings, url, profile);
  }
  const config = {
    baseUrl: url ?? kept?.baseUrl ?? settings.require('ATTEST_URL', MISSING_URL),
    apiKey: key ?? kept?.apiKey ?? settings.require('ATTEST_API_KEY', apiKey),
    urlFrom: url === undefined && kept !== undefined ? kept.from : 'ATTEST_URL',
    keyFrom: key === undefined && kept !== undefined ? kept.from : 'ATTEST_API_KEY',
  };
  settings.assertValid();
  return config;
}

/** Finds the token of a job of GitLab CI or another service, or of GitHub Actions if the job may have one. */
function findJobToken(settings: Settings, baseUrl: string): { token: JobToken; keyFrom: string } | undefined {
  const projectId = settings.find('ATTEST_PROJECT', plainText(64));
  const text = settings.find('ATTEST_ID_TOKEN', jwt);
  const requestUrl = settings.find('ACTIONS_ID_TOKEN_REQUEST_URL', outboundUrl);
  const requestToken = settings.find('ACTIONS_ID_TOKEN_REQUEST_TOKEN', plainText(16_384));
  const audience = settings.get('ATTEST_AUDIENCE', plainText(512), baseUrl);
  settings.assertValid();
  if (text !== undefined) return { token: { projectId, text }, keyFrom: 'ATTEST_ID_TOKEN' };
  if (requestUrl === undefined || requestToken === undefined) return undefined;
  const token = { projectId, requestUrl, requestToken, audience };
  return { token, keyFrom: 'the job of GitHub Actions' };
}

/** A token of a CI job. Errors do not quote it. */
const jwt: SettingType<string> = {
  expected: 'a token in compact form, as `id_tokens` of GitLab CI sets it',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text) || text.length > 16_384) throw new InvalidValue();
    return text;
  },
};

type KeptQuery = { environment: EnvironmentName; profile: ProfileSource; url: string | undefined };

/** The first kept key, of those for `url` if that is given. */
function findKept(settings: Settings, { environment, profile, url }: KeptQuery): KeptKey | undefined {
  const fitting = (kept: KeptKey | undefined) =>
    url === undefined || kept?.baseUrl === url ? kept : undefined;
  if (profile.isNamed) return fitting(profile.find());
  const inCredentials = () => fitting(keyInCredentials(settings, environment));
  return settings.find('DATA_DIR', path) === undefined
    ? (fitting(profile.find()) ?? inCredentials())
    : (inCredentials() ?? fitting(profile.find()));
}

function reportOtherAddress(settings: Settings, url: string, profile: ProfileSource): void {
  const kept = profile.find();
  if (kept === undefined) return;
  settings.report({
    name: 'ATTEST_API_KEY',
    problem: `is not set, and the key of ${kept.from} is sent to ${kept.baseUrl} only, not to ${url}`,
    expected: 'a key for that address, or a profile for it: `attest login --url <url> --profile <name>`',
  });
  settings.assertValid();
}

/**
 * Reads ATTEST_ADMIN_URL, else ATTEST_URL, and ATTEST_ADMIN_TOKEN, else the credentials in DATA_DIR. The stored token
 * is used only with the stored URLs. Throws ConfigError.
 */
export function readAdminConfig(env: Env): AdminConfig {
  const settings = openSettings(env);
  const url = settings.find('ATTEST_ADMIN_URL', publicUrl) ?? settings.find('ATTEST_URL', publicUrl);
  const token = settings.find('ATTEST_ADMIN_TOKEN', adminToken);
  const credentials = url !== undefined && token !== undefined ? undefined : findCredentials(settings);
  settings.assertValid();
  const { baseUrl: publicBase, adminUrl = publicBase, adminToken: ownAdminToken } = credentials ?? {};
  const isOwn = url === undefined || url === publicBase || url === adminUrl;
  const baseUrl = (isOwn ? adminUrl : url) ?? settings.require('ATTEST_URL', publicUrl);
  const ownToken = isOwn ? ownAdminToken : undefined;
  const config = {
    baseUrl,
    adminToken: token ?? ownToken ?? settings.require('ATTEST_ADMIN_TOKEN', adminToken),
  };
  settings.assertValid();
  return config;
}

/** The base URL alone, by ATTEST_URL, a profile or the credentials, for calls without a key. Throws ConfigError. */
export function readBaseUrl(env: Env, profile: ProfileSource): Pick<ClientConfig, 'baseUrl' | 'urlFrom'> {
  const settings = openSettings(env);
  const url = settings.find('ATTEST_URL', publicUrl);
  const query = { environment: 'live', profile, url: undefined } as const;
  const kept = url === undefined ? findKept(settings, query) : undefined;
  settings.assertValid();
  const baseUrl = url ?? kept?.baseUrl ?? settings.require('ATTEST_URL', MISSING_URL);
  settings.assertValid();
  return { baseUrl, urlFrom: kept?.from ?? 'ATTEST_URL' };
}

/**
 * Where to fetch trust roots: ATTEST_VERIFY_URL, `verify` under ATTEST_URL, or that of a profile or the credentials. Throws
 * ConfigError.
 */
export function findVerifySource(env: Env, profile: ProfileSource): VerifySource | undefined {
  const settings = openSettings(env);
  const verifyUrl = settings.find('ATTEST_VERIFY_URL', publicUrl);
  const baseUrl = settings.find('ATTEST_URL', publicUrl);
  const query = { environment: 'live', profile, url: undefined } as const;
  const kept = (verifyUrl ?? baseUrl) ? undefined : findKept(settings, query);
  settings.assertValid();
  if (verifyUrl !== undefined) return { url: verifyUrl, from: 'ATTEST_VERIFY_URL' };
  if (baseUrl !== undefined) return { url: `${baseUrl}/verify`, from: 'ATTEST_URL' };
  return kept && { url: kept.verifyUrl, from: kept.from };
}

function keyInCredentials(settings: Settings, environment: EnvironmentName): KeptKey | undefined {
  const credentials = findCredentials(settings);
  if (credentials === undefined) return undefined;
  const { file, baseUrl, verifyUrl, [environment]: key } = credentials;
  return { from: file, baseUrl, verifyUrl, apiKey: key };
}

function findCredentials(settings: Settings): Credentials | undefined {
  const file = join(resolve(settings.get('DATA_DIR', path, '.data')), 'credentials.json');
  if (!existsSync(file)) return undefined;
  try {
    return parseCredentials(file, readSettingFile(file));
  } catch (error) {
    const problem = error instanceof InvalidValue ? error.message : 'it is damaged';
    settings.report({
      name: file,
      problem: `is wrong (${problem})`,
      expected: 'the file that `attest up` writes',
    });
    return undefined;
  }
}

function parseCredentials(file: string, text: string): Credentials {
  const fields = new Map(Object.entries(JSON.parse(text)));
  const read = <T>(name: string, type: SettingType<T>) => {
    const value = fields.get(name);
    if (typeof value !== 'string') throw new InvalidValue(`it has no ${name}`);
    return type.parse(value);
  };
  return {
    file,
    baseUrl: read('base_url', publicUrl),
    adminUrl: fields.has('admin_url') ? read('admin_url', publicUrl) : undefined,
    verifyUrl: read('verify_url', publicUrl),
    live: read('live_key', apiKey),
    test: read('test_key', apiKey),
    adminToken: fields.has('admin_token') ? read('admin_token', adminToken) : undefined,
  };
}
