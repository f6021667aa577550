/** The lines of docs/verifying.md about EVM witnesses, run in a shell against a chain. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { decodeEvmEvidence } from '../../../src/proof/evm/evidence.js';
import { codeBlocks } from '../../support/source/pages.js';
import { ask, checkpointOf, evmScene, pollUntilLanded } from '../../support/witnesses/evm/scene.js';
import '../../support/foreign/curl.js';

/** Keccak-256 of `Anchored(bytes32,address)`. */
const EVENT = '0xcdfd8c88d25a86e1d49452dc0ae55de56801c9cf37d5b930dc3893c32d5e0b1e';

t.test('curl shows the event, its block and the time', async (t) => {
  const { anvil, contract, witness } = await evmScene(t);
  const { evidence } = await pollUntilLanded(anvil, witness(), await ask(witness()));
  const { digest, transactionHash, blockHash, blockNumber, blockTimestamp } = decodeEvmEvidence(evidence);
  const cwd = t.testdir({});
  writeFileSync(join(cwd, 'checkpoint-body.txt'), checkpointOf(1).body);
  const blocks = await codeBlocks('docs/verifying.md', 'bash');
  const script = blocks.find((block) => block.includes('eth_getTransactionReceipt')) ?? '';
  const env = {
    PATH: process.env.PATH,
    RPC: anvil.url,
    TX: transactionHash,
    BLOCK: blockHash,
    NUMBER: `0x${blockNumber.toString(16)}`,
  };
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-e', '-c', script.replaceAll(/^curl.*$/gm, '$&; echo')],
    {
      cwd,
      env,
    },
  );
  const [sum = '', receipt = '', block = '', canonical = ''] = stdout.split('\n');
  t.match(sum, toHex(digest));
  t.match(JSON.parse(receipt).result, {
    status: '0x1',
    logs: [{ address: contract, topics: [EVENT, `0x${toHex(digest)}`] }],
  });
  t.match(JSON.parse(block).result, { hash: blockHash, timestamp: `0x${blockTimestamp.toString(16)}` });
  t.match(JSON.parse(canonical).result, { hash: blockHash });
});
