/**
 * Reads settings one by one and gathers everything that is wrong with them, so that an operator learns of all of it at
 * once.
 */

/** Environment variables. An empty one counts as not set. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A wrong setting. None of the three ever holds a secret value. */
type SettingProblem = { readonly name: string; readonly problem: string; readonly expected: string };

/** How a setting is read. */
export type SettingType<T> = {
  /** What it should look like, completing "expected ...". */
  readonly expected: string;
  /** Set when the value must not be shown in an error. */
  readonly secret?: true;
  /** Throws InvalidValue. */
  readonly parse: (text: string) => T;
};

/** Why a value is wrong, where that is more than not being of its kind; quotes nothing secret. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue';
}

/** Settings that are missing or wrong; the message is a line for each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(readonly problems: readonly SettingProblem[]) {
    const count = problems.length === 1 ? 'One setting is' : `${problems.length} settings are`;
    const lines = problems.map(({ name, problem, expected }) => `  ${name} ${problem}, expected ${expected}`);
    super([`${count} wrong:`, ...lines].join('\n'));
  }
}

/**
 * The settings of one process. Until `assertValid` has returned, a value that `need` gave may be missing behind its
 * type: its problem is recorded, and `assertValid` throws it.
 */
export type Settings = {
  /** The value, or undefined when not set. */
  find<T>(name: string, type: SettingType<T>): T | undefined;
  /** The value, or `fallback` when not set. */
  get<T>(name: string, type: SettingType<T>, fallback: T): T;
  /** The value; not set is a problem. */
  require<T>(name: string, type: SettingType<T>): T;
  report(problem: SettingProblem): void;
  /** Throws ConfigError with every problem so far. */
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

/** The value of a text, or undefined after reporting what is wrong with it. */
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

/** A value as errors show it: in quotes, on one line, cut short. */
export function quote(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);
}
