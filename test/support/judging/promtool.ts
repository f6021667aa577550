/** Prometheus' own checker of metrics: the system's, or that of Debian's package, unpacked and not installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';

/** What it has to say of a scrape; empty when it finds nothing. Throws where the program cannot be had. */
export async function checkMetrics(scrape: string): Promise<string> {
  const tree = await fetchDebianPackage('prometheus', await openCacheDir());
  const child = spawn(join(tree, 'usr/bin/promtool'), ['check', 'metrics'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  child.stdin.end(scrape);
  const [said] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return said;
}
