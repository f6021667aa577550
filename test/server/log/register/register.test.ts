/** What a register of either kind does: of all who compared with one entry, one replaces it. */
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { NewRegisterEntry, Register } from '../../../../src/server/log/register/register.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { startC2spWitness } from '../../../support/witnesses/c2sp-witness.js';
import { growLog, type History } from '../../../support/witnesses/grown-log.js';

const log = growLog('live.log.example.com', 40);
const { origin } = log;

const entry = (size: number, history: History = log): NewRegisterEntry => ({
  origin,
  size,
  rootHash: history.root(size),
  keyHash: createHash('sha256').update(log.key.publicKey).digest(),
  note: history.note(size),
  proveConsistency: async (fromSize) => history.prove(fromSize, size),
});

/** Opens registers that share their entries. */
const KINDS: Record<string, (test: Test, count: number) => Promise<Register[]>> = {
  folder: async (test, count) => {
    const folder = join(test.testdir(), randomUUID());
    return Promise.all(Array.from({ length: count }, () => openRegister(folder)));
  },
  witness: async (test, count) => {
    const witness = await startC2spWitness(test, [{ origin, keys: [log.key] }]);
    return Promise.all(Array.from({ length: count }, () => openRegister(witness)));
  },
};

const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

async function has(t: Test, register: Register, size: number): Promise<void> {
  const found = await register.read(origin);
  t.equal(found?.size, size);
  t.equal(hex(found?.rootHash), hex(log.root(size)));
}

for (const [kind, open] of Object.entries(KINDS)) {
  t.test(`${kind}: an entry replaces the one it was compared with`, async (t) => {
    const [register] = await open(t, 1);
    if (register === undefined) throw new Error('none was opened');
    t.match(register.location(origin), kind === 'folder' ? origin : /^http:.*\/checkpoint$/);
    t.equal(await register.read(origin), undefined);
    t.equal(await register.replace(entry(1), entry(2)), false, 'there is none');
    t.equal(await register.replace(undefined, entry(2)), true);
    await has(t, register, 2);
    t.equal(await register.replace(undefined, entry(3)), false, 'there is one');
    t.equal(await register.replace(entry(1), entry(3)), false, 'another size');
    const fork = log.fork(1);
    t.equal(await register.replace(entry(2, fork), entry(3, fork)), false, 'another root');
    await has(t, register, 2);
    t.equal(await register.replace(entry(2), entry(2)), true, 'itself');
    t.equal(await register.replace(entry(2), entry(30)), true);
    await has(t, register, 30);
  });

  t.test(`${kind}: of many who compared with the same entry one replaces it`, async (t) => {
    for (const size of [1, 2, 5, 8]) {
      const registers = await open(t, 8);
      await registers[0]!.replace(undefined, entry(size));
      const wanted = registers.map((_, i) => entry(size + 1 + i, i % 2 === 0 ? log : log.fork(size)));
      const done = await Promise.all(registers.map((one, i) => one.replace(entry(size), wanted[i]!)));
      t.same(done.filter(Boolean), [true]);
      const stored = await registers[0]!.read(origin);
      t.same(hex(stored?.rootHash), hex(wanted[done.indexOf(true)]?.rootHash));
    }
  });
}
