import { provide } from '../provide.js';
import { type RunPython, runPython } from './run-python.js';

const python = await provide('python-requests');

/** Python that can import `requests`. A test that imports this is skipped where it cannot be had. */
export const runRequestsPython: RunPython = (args, options) => runPython(python, args, options);
