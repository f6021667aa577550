import t from 'tap';
import { ANCHOR_ABI } from '../../gen/contracts/anchor.js';
import { compileContract } from '../../src/generate/contracts/solidity.js';

const HEAD = '// SPDX-License-Identifier: Apache-2.0\npragma solidity 0.8.37;\n';

t.test('a source that the compiler has an error or a warning for is not compiled', async (t) => {
  t.throws(() => compileContract(`${HEAD}contract A { x }`, 'A'), /ParserError/);
  t.throws(() => compileContract('contract A {}', 'A'), /SPDX license identifier not provided/);
  t.throws(() => compileContract(`${HEAD}contract A {}`, 'B'), /no contract B/);
});

t.test('the same source gives the same code, without metadata', async (t) => {
  const source = `${HEAD}contract A { function f() external pure returns (uint) { return 7; } }`;
  const contract = compileContract(source, 'A');
  t.strictSame(compileContract(`${source}// other text`, 'A'), contract);
  t.match(contract.runtime, /^0x([0-9a-f]{2})+$/);
  t.ok(contract.bytecode.endsWith(contract.runtime.slice(2)), 'and nothing after the code');
});

t.test('the anchoring contract has one function and one event, and nothing of an owner', async (t) => {
  t.strictSame(
    ANCHOR_ABI.map(({ type, name }) => `${type} ${name}`),
    ['event Anchored', 'function anchor'],
  );
});
