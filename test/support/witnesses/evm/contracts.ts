/** Contracts on a test's chain. */
import { ANCHOR_BYTECODE } from '../../../../gen/contracts/anchor.js';
import { compileContract } from '../../../../src/generate/contracts/solidity.js';
import type { EvmMethod } from '../../../../src/proof/evm/contract.js';
import type { Anvil } from './anvil.js';

/** What the Ethereum Attestation Service does with time stamps: the first one counts, others revert. */
const EAS = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

contract Timestamps {
    error AlreadyTimestamped();
    event Timestamped(bytes32 indexed data, uint64 indexed timestamp);
    mapping(bytes32 => uint64) private timestamps;

    function timestamp(bytes32 data) external returns (uint64) {
        if (timestamps[data] != 0) revert AlreadyTimestamped();
        uint64 time = uint64(block.timestamp);
        timestamps[data] = time;
        emit Timestamped(data, time);
        return time;
    }

    function getTimestamp(bytes32 data) external view returns (uint64) {
        return timestamps[data];
    }
}
`;

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

/** Creates the contract that a method calls, and returns its address in lower case. */
export async function deployFor(anvil: Anvil, method: EvmMethod): Promise<string> {
  return deploy(anvil, method === 'anchor' ? ANCHOR_BYTECODE : compileContract(EAS, 'Timestamps').bytecode);
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
