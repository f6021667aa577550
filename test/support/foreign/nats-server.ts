import { getNatsProgram } from '../../../src/server/embedded/nats-program.js';

/** The path of nats-server. A test that imports this is skipped where it cannot be had. */
export function natsServer(): Promise<string> {
  return getNatsProgram(undefined);
}
