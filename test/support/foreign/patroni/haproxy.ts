import { provide } from '../provide.js';

/** HAProxy. A test that imports this is skipped where it cannot be had. */
export const HAPROXY = await provide('haproxy');
