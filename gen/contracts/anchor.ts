// Generated from src/contracts/Anchor.sol by npm run generate.
export const ANCHOR_ABI = [
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "digest",
        "type": "bytes32"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "by",
        "type": "address"
      }
    ],
    "name": "Anchored",
    "type": "event"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "digest",
        "type": "bytes32"
      }
    ],
    "name": "anchor",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const;
/** Creates the contract. */
export const ANCHOR_BYTECODE = '0x60808060405234601357607d908160198239f35b600080fdfe6004361015600c57600080fd5b60003560e01c63eecdf92714602057600080fd5b3460785760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc360112607857336004357fcdfd8c88d25a86e1d49452dc0ae55de56801c9cf37d5b930dc3893c32d5e0b1e600080a3005b600080fd';
/** The code that the chain holds for the contract. */
export const ANCHOR_RUNTIME = '0x6004361015600c57600080fd5b60003560e01c63eecdf92714602057600080fd5b3460785760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc360112607857336004357fcdfd8c88d25a86e1d49452dc0ae55de56801c9cf37d5b930dc3893c32d5e0b1e600080a3005b600080fd';
