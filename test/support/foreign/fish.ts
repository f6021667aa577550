import { putOnPath } from './provide.js';

/** Path of the shell fish. A test that imports this is skipped where it cannot be had. */
export const FISH = await putOnPath('fish');
