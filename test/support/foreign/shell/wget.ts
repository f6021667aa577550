/** Wget, which is on the PATH of this process. A test that imports this is skipped where it cannot be had. */
import { putOnPath } from '../provide.js';

await putOnPath('wget');
