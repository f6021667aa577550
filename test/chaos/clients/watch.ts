/** Keeps every checkpoint that any API process shows of either log. */
import { setTimeout as delay } from 'node:timers/promises';
import type { EnvironmentName } from '../../../src/protocol/environment.js';
import type { RecordWriter } from '../record.js';
import type { Scene } from '../scene/scene.js';

export type Watch = { stop(): Promise<void> };

export const ENVIRONMENTS: readonly EnvironmentName[] = ['live', 'test'];
const EVERY_MS = 250;
const TIMEOUT_MS = 3_000;

/** Looks at every API process in turn until it is stopped. */
export function startWatch(scene: Scene): Watch {
  let stopped = false;
  const shown = createShown(scene.record);
  const look = async (which: number) => {
    while (!stopped) {
      const api = scene.apis()[which];
      if (api !== undefined) {
        for (const environment of ENVIRONMENTS) {
          const note = await readCheckpoint(api, environment);
          if (note !== undefined) shown(environment, note, `api ${which + 1}`);
        }
      }
      await delay(EVERY_MS);
    }
  };
  const looking = Promise.all([look(0), look(1)]);
  return {
    stop: async () => {
      stopped = true;
      await looking;
    },
  };
}

/** Records each checkpoint when it is seen first. */
export function createShown(record: RecordWriter) {
  const seen = new Set<string>();
  return (environment: EnvironmentName, note: string, where: string) => {
    if (seen.has(environment + note)) return;
    seen.add(environment + note);
    record.write({ what: 'shown', environment, note, where });
  };
}

/** A log's checkpoint, from the public mirror of an API process; undefined when it cannot be had or there is none. */
async function readCheckpoint(api: string, environment: EnvironmentName): Promise<string | undefined> {
  try {
    const answer = await fetch(`${api}/verify/log/${environment}/checkpoint`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await answer.text();
    return answer.status === 200 ? text : undefined;
  } catch {
    return undefined;
  }
}
