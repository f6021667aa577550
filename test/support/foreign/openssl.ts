import { putOnPath } from './provide.js';

/** OpenSSL, which is on the PATH of this process. A test that imports this is skipped where it cannot be had. */
export const OPENSSL = await putOnPath('openssl');
