/**
 * Environment that has a program of Node print the most memory it had, in KiB, as the last line of standard error. From /proc
 * where that is: the maximum that getrusage has begins with what the process had that started it.
 */
const SCRIPT = `import { readFileSync } from 'node:fs';
process.on('exit', () => {
  let status = '';
  try { status = readFileSync('/proc/self/status', 'utf8'); } catch {}
  console.error(/VmHWM:\\s+(\\d+)/.exec(status)?.[1] ?? process.resourceUsage().maxRSS);
});`;

export const PRINT_MEMORY = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SCRIPT)}`,
};
