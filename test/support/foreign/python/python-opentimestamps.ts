import { provide } from '../provide.js';
import { type RunPython, runPython } from './run-python.js';

const python = await provide('python-opentimestamps');

/** Python that can import `opentimestamps`. A test that imports this is skipped where it cannot be had. */
export const runOpentimestampsPython: RunPython = (args, options) => runPython(python, args, options);
