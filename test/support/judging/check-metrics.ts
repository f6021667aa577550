import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { PROMTOOL } from '../foreign/promtool.js';

/** What Prometheus' own checker has to say of a scrape; empty when it finds nothing. */
export async function checkMetrics(scrape: string): Promise<string> {
  const child = spawn(PROMTOOL, ['check', 'metrics'], { stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.end(scrape);
  const [said] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return said;
}
