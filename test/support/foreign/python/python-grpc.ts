import { provide } from '../provide.js';
import { type RunPython, runPython } from './run-python.js';

const python = await provide('python-grpc');

/** Python that can import `grpc` and `grpc_tools`. A test that imports this is skipped where it cannot be had. */
export const runGrpcPython: RunPython = (args, options) => runPython(python, args, options);
