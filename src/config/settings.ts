/**
 * Reads settings one by one and collects all problems, so that one error lists them all.
 */
import { InvalidValue } from './invalid-value.js';
import { readSecretFile } from './setting-files.js';

/** Environment variables. An empty value counts as not set. */
export type Env = Readonly<Record<string, string | undefined>>;

/** An invalid setting. No member ever contains a secret value. */
type SettingProblem = { readonly name: string; readonly problem: string; readonly expected: string };

/** The type of a setting: its parser and its description. */
export type SettingType<T> = {
  /** The valid form, which completes "expected ...". */
  readonly expected: string;
  /** Set if errors must not quote the value. */
  readonly secret?: true;
  /** Set if the value may be in a file, which the setting of this name and `_FILE` names. */
  readonly fromFile?: true;
  /** Throws InvalidValue if the text is not of this type. */
  readonly parse: (text: string) => T;
};

/** Missing or invalid settings; the message has a line for each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(readonly problems: readonly SettingProblem[]) {
    const count = problems.length === 1 ? 'One setting is' : `${problems.length} settings are`;
    const lines = problems.map(({ name, problem, expected }) => `  ${name} ${problem}, expected ${expected}`);
    super([`${count} wrong:`, ...lines].join('\n'));
  }
}

/**
 * The settings of one process. A missing value of `require` is undefined despite its type until `assertValid` throws
 * its problem.
 */
export type Settings = {
  /** The value, or undefined if not set. */
  find<T>(name: string, type: SettingType<T>): T | undefined;
  /** The value, or `fallback` if not set. */
  get<T>(name: string, type: SettingType<T>, fallback: T): T;
  /** The value; reports a problem if not set. */
  require<T>(name: string, type: SettingType<T>): T;
  report(problem: SettingProblem): void;
  /** Throws ConfigError if problems were reported. */
  assertValid(): void;
};

/** Starts reading `env`. */
export function openSettings(env: Env): Settings {
  const problems: SettingProblem[] = [];
  const report = (problem: SettingProblem) => void problems.push(problem);
  const find = <T>(name: string, type: SettingType<T>) => {
    const path = type.fromFile && env[`${name}_FILE`];
    const text = env[name];
    if (!path) return text ? parseValue(report, name, type, text) : undefined;
    if (!text) return parseValue(report, `${name}_FILE`, inFile(type), path);
    return void report({ name, problem: `is set, and ${name}_FILE, too`, expected: 'one of the two' });
  };
  return {
    find,
    get: (name, type, fallback) => find(name, type) ?? fallback,
    require: <T>(name: string, type: SettingType<T>) => {
      const isSet = env[name] || (type.fromFile && env[`${name}_FILE`]);
      if (!isSet) report({ name, problem: 'is not set', expected: type.expected });
      return find(name, type) as T;
    },
    report,
    assertValid: () => {
      if (problems.length > 0) throw new ConfigError(problems);
    },
  };
}

/** The path of a file with a value. Errors do not quote the path: it may be the secret itself, set under the wrong name. */
function inFile<T>({ expected, parse }: SettingType<T>): SettingType<T> {
  return {
    expected: `the path of a file with ${expected}`,
    secret: true,
    parse: (path) => parse(readSecretFile(path)),
  };
}

/** Parses a value. Reports the problem and returns undefined if it is invalid. */
export function parseValue<T>(
  report: (problem: SettingProblem) => void,
  name: string,
  { expected, secret, parse }: SettingType<T>,
  text: string,
): T | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const shown = secret ? 'is wrong' : `is ${quote(text)}`;
    report({ name, problem: error.message === '' ? shown : `${shown} (${error.message})`, expected });
    return undefined;
  }
}

const MAX_QUOTED = 80;

/** Quotes a value for errors: as a JSON string of at most 80 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);
}
