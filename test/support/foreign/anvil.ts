import { createRequire } from 'node:module';

/** The package of npm that has Anvil for this platform. */
export const ANVIL_PACKAGE = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;

/** The path of Anvil, which npm installs. A test that imports this is skipped where it is not there. */
export function anvil(): string {
  return createRequire(import.meta.url).resolve(`${ANVIL_PACKAGE}/bin/anvil`);
}
