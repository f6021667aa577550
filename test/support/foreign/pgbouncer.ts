import { provide } from './provide.js';

/** PgBouncer. A test that imports this is skipped where it cannot be had. */
export const PGBOUNCER = await provide('pgbouncer');
