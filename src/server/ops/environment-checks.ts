import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import type { LogProblem } from '../log/register/register-check.js';
import type { Check } from './ops-listener.js';

/** A readiness check per environment: a frozen log makes only its own environment unready. */
export function environmentChecks(name: string, find: () => Promise<LogProblem[]>): Check[] {
  return ENVIRONMENTS.map((number) => ({
    name: `${name} ${environmentName(number)}`,
    environment: environmentName(number),
    asks: 'the database or the checkpoint register',
    check: async () => (await find()).find(({ environment }) => environment === number)?.reason,
  }));
}
