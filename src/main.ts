#!/usr/bin/env node
// Imports nothing: an older Node must get as far as the message.

/** The least version of `engines` in package.json. */
const NEEDED = [20, 19] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(
    `error: attest needs Node ${NEEDED.join('.')} or newer; this is ${process.version}: ${process.execPath}\n`,
  );
  process.exitCode = 2;
} else {
  await import('./cli/run-process.js');
}
