// Writes a set of so many entries, reads it, or makes a member proof, by the client library: write|read|prove FILE COUNT.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createSet, proveMember, readSet } from '../../../src/client/client.js';

const [task, file = '', count = ''] = process.argv.slice(2);
const entries = Number(count);
const pathOf = (n: number) => `samples/${String(n).padStart(7, '0')}.json`;

if (task === 'write') await pipeline(Readable.from(entryLines()), createWriteStream(file));
if (task === 'read') {
  const { head } = await readSet(createReadStream(file)).finish();
  if (head.entries !== entries) throw new Error(`the set has ${head.entries} entries, not ${entries}`);
}
if (task === 'prove') {
  const { index } = await proveMember(createReadStream(file), pathOf(Math.floor(entries / 2)));
  if (index !== Math.floor(entries / 2)) throw new Error(`the proof is of entry ${index}`);
}

function* entryLines(): Generator<string> {
  const set = createSet();
  for (let n = 0; n < entries; n++) {
    const sha256 = createHash('sha256').update(String(n)).digest('hex');
    yield set.add({ path: pathOf(n), bytes: 1_024, sha256, salt: randomBytes(16).toString('hex') });
  }
  yield set.end().text;
}
