import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { compileContract } from './solidity.js';

const SOURCE = 'src/contracts/Anchor.sol';
const TARGET = 'gen/contracts/anchor.ts';

/** Compiles the anchoring contract at `root` and writes its ABI and code as a module below `out`. Throws what the compiler reports. */
export function writeContracts(root: string, out: string): void {
  const { abi, bytecode, runtime } = compileContract(readFileSync(join(root, SOURCE), 'utf8'), 'Anchor');
  const path = join(out, TARGET);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    [
      `// Generated from ${SOURCE} by npm run generate.`,
      `export const ANCHOR_ABI = ${JSON.stringify(abi, undefined, 2)} as const;`,
      '/** Creates the contract. */',
      `export const ANCHOR_BYTECODE = '${bytecode}';`,
      '/** The code that the chain holds for the contract. */',
      `export const ANCHOR_RUNTIME = '${runtime}';`,
      '',
    ].join('\n'),
  );
}
