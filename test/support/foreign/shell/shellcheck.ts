import { provide } from '../provide.js';

/** The linter of shell scripts. A test that imports this is skipped where it cannot be had. */
export const SHELLCHECK = await provide('shellcheck');
