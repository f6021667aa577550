import { putOnPath } from './provide.js';

/** Path of the shell zsh. A test that imports this is skipped where it cannot be had. */
export const ZSH = await putOnPath('zsh');
