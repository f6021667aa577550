/** The profile that a command uses: an address and the API key for it, under a name. */
import { apiKey, type KeptKey, type ProfileSource } from '../../config/client-config.js';
import { InvalidValue } from '../../config/invalid-value.js';
import { publicUrl } from '../../config/setting-types.js';
import type { Env, SettingType } from '../../config/settings.js';
import { UsageError } from '../cli.js';
import { findProfilesPath, type RawProfiles, readProfiles } from './profile-file.js';

/** The profile without a name of its own. */
const DEFAULT_PROFILE = 'default';

/** A profile as it is in the file. */
export type Profile = { readonly baseUrl: string; readonly apiKey: string };

type ProfileFlags = { readonly profile?: string; readonly dataDir?: string | undefined };

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LAST = 4;

/**
 * The name of the profile by --profile, else ATTEST_PROFILE, with the one that has it, else the default one. Throws UsageError
 * if it is not a name.
 */
export function chooseProfile(
  { ATTEST_PROFILE }: Env,
  flag: string | undefined,
): { name: string; by?: string } {
  const chosen =
    flag !== undefined
      ? { name: flag, by: '--profile' }
      : ATTEST_PROFILE
        ? { name: ATTEST_PROFILE, by: 'ATTEST_PROFILE' }
        : { name: DEFAULT_PROFILE };
  if (NAME.test(chosen.name)) return chosen;
  throw new UsageError(
    `${chosen.by} is not the name of a profile: 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first`,
  );
}

/** The source of the profile that is used where flags and environment leave something open; none with --data-dir. */
export function profileSource(env: Env, { profile, dataDir }: ProfileFlags): ProfileSource {
  if (dataDir !== undefined && profile === undefined) return { isNamed: false, find: () => undefined };
  const { name, by } = chooseProfile(env, profile);
  return { isNamed: by !== undefined, find: () => findKeptKey(env, name, by) };
}

/** The environment without the address and key of a service, which --profile comes before. */
export function envBesideProfile(env: Env, { profile }: ProfileFlags): Env {
  if (profile === undefined) return env;
  return { ...env, ATTEST_URL: undefined, ATTEST_API_KEY: undefined, ATTEST_VERIFY_URL: undefined };
}

function findKeptKey(env: Env, name: string, by: string | undefined): KeptKey | undefined {
  const path = findProfilesPath(env);
  const profiles: RawProfiles = path === undefined ? new Map() : readProfiles(path);
  if (path === undefined || !profiles.has(name)) {
    if (by === undefined) return undefined;
    throw new UsageError(
      `there is no profile ${name} (of ${by})${path === undefined ? '' : ` in ${path}`}: \`attest profiles\` lists them, \`attest login --profile ${name}\` makes it`,
    );
  }
  const kept = readProfile(path, name, profiles.get(name));
  return { ...kept, verifyUrl: `${kept.baseUrl}/verify`, from: `profile ${name} in ${path}` };
}

/** Checks one profile of the file. Throws UsageError if its address or key cannot be used. */
export function readProfile(path: string, name: string, value: unknown): Profile {
  const fields = new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
  const read = (member: string, type: SettingType<string>) => {
    const text = fields.get(member);
    const problem = `profile ${name} in ${path} has no valid ${member}: \`attest login --profile ${name}\` makes it anew`;
    if (typeof text !== 'string') throw new UsageError(problem);
    try {
      return type.parse(text);
    } catch (error) {
      throw error instanceof InvalidValue ? new UsageError(problem) : error;
    }
  };
  return { baseUrl: read('base_url', publicUrl), apiKey: read('api_key', apiKey) };
}

/** An API key for people: its environment and its last four characters. */
export function shownKey(key: string): string {
  return `${/^svc_(live|test)_/.exec(key)?.[0] ?? ''}…${key.slice(-LAST)}`;
}
