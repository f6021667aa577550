import { join } from 'node:path';
import t from 'tap';
import { UsageError } from '../../../src/cli/cli.js';
import { readBitcoinHeaders } from '../../../src/cli/input/bitcoin-headers.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { mineHeader } from '../../support/witnesses/opentimestamps/block.js';

const [first, second] = [1, 2].map((n) => mineHeader(sha256(Uint8Array.of(n)), n));
const [firstHex, secondHex] = [toHex(first!), toHex(second!)];

t.test('headers come from flags and a file', async (t) => {
  const file = join(t.testdir({ headers: `10 ${firstHex}\r\n\n11\t${secondHex}\n` }), 'headers');
  const found = await readBitcoinHeaders({ bitcoinHeader: [`10:${firstHex}`], bitcoinHeaders: file });
  t.strictSame(
    [...found],
    [
      [10, first],
      [11, second],
    ],
  );
  t.equal((await readBitcoinHeaders({})).size, 0);
});

t.test('an invalid header is a usage error that names its position', async (t) => {
  const easy = `${firstHex!.slice(0, 144)}00000003${firstHex!.slice(152)}`;
  for (const [text, message] of [
    [firstHex, /^--bitcoin-header is not a height and a block header of 80 bytes in hex$/],
    [`x:${firstHex}`, /^--bitcoin-header is not/],
    [`10:${firstHex!.slice(2)}`, /^--bitcoin-header is not/],
    [`10:${easy}`, /^--bitcoin-header: a block header states no valid target$/],
  ] as const) {
    await t.rejects(readBitcoinHeaders({ bitcoinHeader: [text!] }), { message });
  }
  const dir = t.testdir({ wrong: `10 ${firstHex}\n11 zz\n`, other: `10 ${secondHex}\n` });
  await t.rejects(readBitcoinHeaders({ bitcoinHeaders: join(dir, 'wrong') }), {
    message: /^line 2 of .*wrong is not a height/,
  });
  await t.rejects(
    readBitcoinHeaders({ bitcoinHeader: [`10:${firstHex}`], bitcoinHeaders: join(dir, 'other') }),
    { message: /^line 1 of .*other has another header for block 10$/ },
  );
  await t.rejects(readBitcoinHeaders({ bitcoinHeaders: join(dir, 'nowhere') }), UsageError);
});
