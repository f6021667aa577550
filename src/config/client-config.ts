/** Client settings of the command line: from the environment, or from credentials.json in the data directory. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { EnvironmentName } from '../protocol/environment.js';
import { parseApiKey } from '../server/keys/api-key.js';
import { readSettingFile } from './setting-files.js';
import { adminToken, path, publicUrl } from './setting-types.js';
import { type Env, InvalidValue, openSettings, type Settings, type SettingType } from './settings.js';

/** Base URL and API key. */
type ClientConfig = { readonly baseUrl: string; readonly apiKey: string };

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

const apiKey: SettingType<string> = {
  expected: 'an API key, svc_live_... or svc_test_...',
  secret: true,
  parse: (text) => {
    if (parseApiKey(text) === undefined) throw new InvalidValue('it is cut off or mistyped');
    return text;
  },
};

/**
 * Reads ATTEST_URL and ATTEST_API_KEY, else the credentials in DATA_DIR. The stored key for `environment` is used only
 * with the stored URL. Throws ConfigError.
 */
export function readClientConfig(env: Env, environment: EnvironmentName): ClientConfig {
  const settings = openSettings(env);
  const url = settings.find('ATTEST_URL', publicUrl);
  const key = settings.find('ATTEST_API_KEY', apiKey);
  const credentials = url !== undefined && key !== undefined ? undefined : findCredentials(settings);
  settings.assertValid();
  const baseUrl = url ?? credentials?.baseUrl ?? settings.require('ATTEST_URL', publicUrl);
  const ownKey = credentials && credentials.baseUrl === baseUrl ? credentials[environment] : undefined;
  const config = { baseUrl, apiKey: key ?? ownKey ?? settings.require('ATTEST_API_KEY', apiKey) };
  settings.assertValid();
  return config;
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

/** Where to fetch trust roots: ATTEST_VERIFY_URL, `verify` under ATTEST_URL, or the credentials. Throws ConfigError. */
export function findVerifySource(env: Env): VerifySource | undefined {
  const settings = openSettings(env);
  const verifyUrl = settings.find('ATTEST_VERIFY_URL', publicUrl);
  const baseUrl = settings.find('ATTEST_URL', publicUrl);
  const credentials = (verifyUrl ?? baseUrl) ? undefined : findCredentials(settings);
  settings.assertValid();
  if (verifyUrl !== undefined) return { url: verifyUrl, from: 'ATTEST_VERIFY_URL' };
  if (baseUrl !== undefined) return { url: `${baseUrl}/verify`, from: 'ATTEST_URL' };
  return credentials && { url: credentials.verifyUrl, from: credentials.file };
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
