import { provide } from '../provide.js';

/** Systemd's checker of units. A test that imports this is skipped where it cannot be had. */
export const SYSTEMD_ANALYZE = await provide('systemd-analyze');
