import { ENVIRONMENTS, type EnvironmentName, environmentName } from '../protocol/environment.js';
import { InvalidValue } from './invalid-value.js';
import type { SettingType } from './settings.js';

/** How many logs an environment has beside each other. */
export type LogLanes = { readonly [E in EnvironmentName]: number };

/** The default. */
export const ONE_LOG_EACH: LogLanes = { live: 1, test: 1 };

const LANES = /^(?<name>[a-z]+):(?<count>[1-9]\d?)$/;
const MAX_LANES = 64;

/** `live:4,test:1`. An environment that is not named has one log. */
export const logLanes: SettingType<LogLanes> = {
  expected: `a number of logs from 1 to ${MAX_LANES} for each environment, such as live:4,test:1`,
  parse: (text) => {
    const lanes = { ...ONE_LOG_EACH };
    const names = ENVIRONMENTS.map(environmentName);
    const seen = new Set<string>();
    for (const part of text.split(',')) {
      const { name = '', count } = LANES.exec(part)?.groups ?? {};
      const found = names.find((one) => one === name && !seen.has(one));
      if (found === undefined || Number(count) > MAX_LANES) throw new InvalidValue();
      seen.add(found);
      lanes[found] = Number(count);
    }
    return lanes;
  },
};
