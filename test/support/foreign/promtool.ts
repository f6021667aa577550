import { provide } from './provide.js';

/** Prometheus' own checker of metrics. A test that imports this is skipped where it cannot be had. */
export const PROMTOOL = await provide('promtool');
