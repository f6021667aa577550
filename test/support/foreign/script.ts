import { putOnPath } from './provide.js';

/** Path of util-linux's script, which runs a program on a pseudo-terminal. A test that imports this is skipped where it cannot be had. */
export const SCRIPT = await putOnPath('script');
