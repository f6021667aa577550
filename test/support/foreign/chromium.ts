import { provide } from './provide.js';

/** Debian's Chromium. A test that imports this is skipped where it cannot be had. */
export const CHROMIUM = await provide('chromium');
