/**
 * Reads settings one by one and collects all problems, so that one error lists them all.
 */

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
  /** Throws InvalidValue if the text is not of this type. */
  readonly parse: (text: string) => T;
};

/** A value is invalid. The message, if not empty, gives the reason and quotes no secret. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue';
}

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
    const text = env[name];
    return text === undefined || text === '' ? undefined : parseValue(report, name, type, text);
  };
  return {
    find,
    get: (name, type, fallback) => find(name, type) ?? fallback,
    require: <T>(name: string, type: SettingType<T>) => {
      if (!env[name]) report({ name, problem: 'is not set', expected: type.expected });
      return find(name, type) as T;
    },
    report,
    assertValid: () => {
      if (problems.length > 0) throw new ConfigError(problems);
    },
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
