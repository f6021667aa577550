import { provide } from '../provide.js';

/** The registry of the distribution project. A test that imports this is skipped where it cannot be had. */
export const DOCKER_REGISTRY = await provide('docker-registry');
