import { putOnPath } from './provide.js';

/**
 * The server of OpenSSH; its `ssh` and `ssh-keygen` are on the PATH of this process. A test that imports this is skipped
 * where they cannot be had.
 */
export const SSHD = await putOnPath('sshd');
