/** `npm run dev`: builds and restarts `attest up` after every change; arguments are passed on to it. */
import { develop } from './develop/develop.js';

const stop = new AbortController();
const force = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => (stop.signal.aborted ? force : stop).abort());
}

await develop({
  folders: ['src', 'gen'],
  build: ['npm', 'run', '--silent', 'build'],
  serve: [process.execPath, '--enable-source-maps', 'dist/src/main.js', 'up', ...process.argv.slice(2)],
  stdio: 'inherit',
  print: (line) => console.error(`dev: ${line}`),
  stop: stop.signal,
  force: force.signal,
});
