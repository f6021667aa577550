import { dirname } from 'node:path';
import { provide } from '../provide.js';

/**
 * The folder of Postgres's own programs, those of copies and of rewinding among them, which the embedded one lacks. A test
 * that imports this is skipped where they cannot be had.
 */
export const POSTGRES_PROGRAMS = dirname(await provide('postgresql'));
