import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Services } from '../services.js';

/** The service under attack: an `attest api` of its own, just started. */
export type Target = {
  services: Services;
  baseUrl: string;
  port: number;
  /** Of `/livez`, `/readyz` and `/metrics`. */
  opsPort: number;
  /** Submissions in its tables, all witnessed. */
  rows: number;
  /** Makes an API key with the limits that keys have by default. */
  makeKey: () => Promise<string>;
  /** For connections that are to be held until everything is measured. */
  hooks: ShutdownHooks;
};

/** Something that a stranger or a tenant could do. A file of `attacks/` exports `attacks`: each is a row of the table. */
export type Attack = {
  /** What the row is called. */
  name: string;
  /** Does it. Resolves when all is sent, and returns how many bytes of requests that was. */
  run: (target: Target) => Promise<number>;
};
