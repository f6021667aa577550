import { ENVIRONMENTS, environmentName } from '../environment.js';
import type { Check } from '../ops.js';
import type { LogProblem } from './register-check.js';

/** A check for each environment: a log that is frozen takes its own environment away, and no other. */
export function environmentChecks(name: string, find: () => Promise<LogProblem[]>): Check[] {
  return ENVIRONMENTS.map((number) => ({
    name: `${name} ${environmentName(number)}`,
    environment: environmentName(number),
    check: async () => (await find()).find(({ environment }) => environment === number)?.reason,
  }));
}
