import { createSecretKey } from 'node:crypto';
import { inspect } from 'node:util';
import t from 'tap';
import { evmAccount } from '../../../../../src/server/witnessing/clients/evm/account.js';
import { resolvedBy } from '../../../../support/source/loaded-modules.js';

/** The first example of EIP-155's key, whose address is in many documents. */
const KEY = '4646464646464646464646464646464646464646464646464646464646464646';
const ADDRESS = '0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f';

const TRANSACTION = {
  chainId: 1,
  nonce: 200_000,
  to: ADDRESS,
  data: '0x12',
  gasLimit: 21_000n,
  maxFeePerGas: 2n,
  maxPriorityFeePerGas: 1n,
};

const account = evmAccount(createSecretKey(KEY, 'hex'));

t.test('the address is that of the key', async (t) => {
  t.equal(account.address, ADDRESS);
});

t.test('a transaction is signed, with any nonce', async (t) => {
  const { raw, hash } = await account.sign(TRANSACTION);
  t.match(raw, /^0x02f8[0-9a-f]+$/);
  t.match(hash, /^0x[0-9a-f]{64}$/);
  t.strictSame(await account.sign(TRANSACTION), { raw, hash }, 'the same for the same');
});

t.test('the key is in no text of the account', async (t) => {
  t.notMatch(`${inspect(account, { depth: 9 })}${JSON.stringify(account)}`, '464646');
});

t.test('a package that is not installed is named to the operator', async (t) => {
  const missing = Object.assign(new Error('x'), { code: 'ERR_MODULE_NOT_FOUND' });
  const without = evmAccount(createSecretKey(KEY, 'hex'), () => Promise.reject(missing));
  await t.rejects(without.sign(TRANSACTION), { message: /run: npm install micro-eth-signer$/ });
  const broken = evmAccount(createSecretKey(KEY, 'hex'), () => Promise.reject(new SyntaxError('broken')));
  await t.rejects(broken.sign(TRANSACTION), { name: 'SyntaxError' });
});

t.test('the package is not loaded before the first transaction is signed', async (t) => {
  const opener = new URL('../../../../../src/server/process/open-witnesses.js', import.meta.url).href;
  const resolved = await resolvedBy(`await import('${opener}');`);
  t.match(resolved, /evm\/account\.js/);
  t.notMatch(resolved, /micro-eth-signer/);
});
