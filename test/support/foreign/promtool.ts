import { dirname, join } from 'node:path';
import { provide } from './provide.js';

/** Prometheus' own checker of metrics and rules. A test that imports this is skipped where it cannot be had. */
export const PROMTOOL = await provide('promtool');
/** Prometheus itself, of the same package. */
export const PROMETHEUS = join(dirname(PROMTOOL), 'prometheus');
