/** Contracts on a test's chain. */
import { ANCHOR_BYTECODE } from '../../../../gen/contracts/anchor.js';
import { compileContract } from '../../../../src/generate/contracts/solidity.js';
import type { Anvil } from './anvil.js';

/** Accepts every estimate, and reverts what is executed: gas is estimated without a price. */
const REVERTING = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

contract Reverting {
    fallback() external {
        require(tx.gasprice == 0);
    }
}
`;

/** Emits nothing. */
const SILENT = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

contract Silent {
    fallback() external {}
}
`;

/** Creates the anchoring contract, and returns its address in lower case. */
export async function deployAnchor(anvil: Anvil): Promise<string> {
  return deploy(anvil, ANCHOR_BYTECODE);
}

/** Creates a contract that misbehaves, and returns its address in lower case. */
export async function deployWrong(anvil: Anvil, kind: 'reverting' | 'silent'): Promise<string> {
  const { bytecode } =
    kind === 'reverting' ? compileContract(REVERTING, 'Reverting') : compileContract(SILENT, 'Silent');
  return deploy(anvil, bytecode);
}

async function deploy(anvil: Anvil, data: string): Promise<string> {
  return (await anvil.execute({ data })).contractAddress.toLowerCase();
}
