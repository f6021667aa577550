/** `npm run dev`, which `tsx watch` runs again after every change: builds, then is `attest up`, to which arguments are passed on. */
import { spawnSync } from 'node:child_process';

const { status } = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
if (status === 0) {
  process.argv.splice(2, 0, 'up');
  await import(new URL('../../dist/src/main.js', import.meta.url).href);
} else {
  console.error('dev: the build failed; the next change builds again');
}
