/** The settings of the identity provider by which people sign in to the dashboard. */
import { InvalidValue } from './invalid-value.js';
import { plainText } from './setting-types.js';
import type { Settings, SettingType } from './settings.js';

/** A claim and the pattern that it has to match. */
export type ClaimCondition = { readonly claim: string; readonly pattern: string };

/** The identity provider. */
export type OidcConfig = {
  /** Exactly as `iss` of its tokens has it. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Separated by spaces; `openid` is one of them. */
  readonly scopes: string;
  /** What the sign-in page calls it. */
  readonly name: string;
  /** Who is an operator: people whose token meets one of these. */
  readonly operators: readonly ClaimCondition[];
};

/** https, or http of this machine. */
const issuer: SettingType<string> = {
  expected: 'an https URL without query and fragment, such as https://login.example.com',
  parse: (text) => {
    const isUrl = /^https?:\/\/[^?#\s]+$/.test(text) && URL.canParse(text);
    if (!isUrl || (text.startsWith('http:') && !isLoopback(new URL(text).hostname))) throw new InvalidValue();
    return text;
  },
};

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

const clientSecret: SettingType<string> = { ...plainText(1024), secret: true, fromFile: true };

const scopes: SettingType<string> = {
  expected: 'scopes with spaces between them, openid among them',
  parse: (text) => {
    const list = text.trim().split(/\s+/);
    if (!list.includes('openid') || !list.every((scope) => /^[!#-[\]-~]{1,200}$/.test(scope)))
      throw new InvalidValue();
    return list.join(' ');
  },
};

const operators: SettingType<ClaimCondition[]> = {
  expected: 'comma-separated <claim>=<pattern>, such as groups=platform,email=alice@example.com',
  parse: (text) => text.split(',').map((condition) => parseCondition(condition.trim())),
};

function parseCondition(text: string): ClaimCondition {
  const [, claim = '', pattern = ''] = /^([^=]{1,64})=(.{1,256})$/.exec(text) ?? [];
  if (claim === '') throw new InvalidValue();
  if (/^\*+$/.test(pattern)) throw new InvalidValue(`${claim}=* would be everybody`);
  return { claim, pattern };
}

/** Reads OIDC_*. Returns undefined without OIDC_ISSUER. */
export function readOidc(settings: Settings): OidcConfig | undefined {
  const found = settings.find('OIDC_ISSUER', issuer);
  const named = settings.find('OIDC_NAME', plainText(60));
  const read = {
    scopes: settings.get('OIDC_SCOPES', scopes, 'openid email profile'),
    operators: settings.get('OIDC_OPERATORS', operators, []),
  };
  if (found === undefined) {
    if (settings.find('OIDC_CLIENT_ID', plainText(512)) !== undefined)
      settings.report({
        name: 'OIDC_CLIENT_ID',
        problem: 'is set',
        expected: 'a valid OIDC_ISSUER beside it',
      });
    return undefined;
  }
  return {
    issuer: found,
    clientId: settings.require('OIDC_CLIENT_ID', plainText(512)),
    clientSecret: settings.require('OIDC_CLIENT_SECRET', clientSecret),
    name: named ?? new URL(found).host,
    ...read,
  };
}
