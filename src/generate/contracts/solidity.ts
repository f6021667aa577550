/** The compiler of Solidity, from npm. It is deterministic: equal sources and settings give equal code. */
import solc from 'solc';

/** `bytecode` creates the contract, `runtime` is the code that the chain then holds; both are 0x and lower-case hex. */
type CompiledContract = { abi: unknown[]; bytecode: string; runtime: string };

type Output = {
  errors?: { formattedMessage: string }[];
  contracts?: Record<string, Record<string, { abi: unknown[]; evm: Record<string, { object: string }> }>>;
};

/**
 * Before Shanghai, so that chains without PUSH0 take the code. Without the metadata that the compiler would append, the
 * code depends on nothing but the program.
 */
const SETTINGS = {
  evmVersion: 'paris',
  viaIR: true,
  optimizer: { enabled: true, runs: 1_000_000 },
  metadata: { appendCBOR: false, bytecodeHash: 'none' },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
};

const compile: (input: string) => string = solc.compile;

/** Compiles one contract of a source. Throws Error with the compiler's messages, warnings included. */
export function compileContract(source: string, name: string): CompiledContract {
  const input = { language: 'Solidity', sources: { source: { content: source } }, settings: SETTINGS };
  const { errors = [], contracts } = JSON.parse(compile(JSON.stringify(input))) as Output;
  const contract = contracts?.source?.[name];
  if (errors.length > 0 || contract === undefined) {
    throw new Error(
      errors.map(({ formattedMessage }) => formattedMessage).join('\n') || `no contract ${name}`,
    );
  }
  const { bytecode, deployedBytecode } = contract.evm;
  return { abi: contract.abi, bytecode: `0x${bytecode?.object}`, runtime: `0x${deployedBytecode?.object}` };
}
