/** The service's path for unary RPCs, by the runner and the cases of Connect's conformance suite. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runBuf } from '../../support/calling/buf.js';
import { run } from '../command.js';
import { accepting, type Row } from '../rows.js';
import type { Scene } from '../scene.js';
import { CHECKOUT, conformanceProtos, tool } from '../tools.js';

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url));
const FILES = join(CHECKOUT, 'test/interop/conformance');
/** What the runner prints at its end. */
const PASSED = /^(\d+) passed, 0 failed$/m;
const KNOWN = /Another (\d+) failed as expected/;
/** A case whose deadline the server saw pass before the client. */
const LATE = /^INFO: Timeouts\/.* failed \(as expected\)/gm;

/** Why a case fails that is known to: known-failing.txt explains each. The code of the error is right in all. */
const EXPLAINED = [
  /^(; )?actual error contain \d details; expecting 0$/,
  /^connect error JSON: details\[\d\]: could not check debug data because message type "[\w.]+" could not be resolved: proto:\snot found$/,
];

/** Every case of unary calls, in each protocol, version of HTTP, codec and compression; those known to fail must fail. */
export async function checkConformance({ dir }: Pick<Scene, 'dir'>): Promise<Row[]> {
  const descriptor = join(dir, 'conformance.binpb');
  await runBuf(['build', await conformanceProtos(), '-o', descriptor]);
  const said = await run(tool('connectconformance'), [
    ...['--mode', 'server', '--conf', join(FILES, 'config.yaml')],
    ...['--known-failing', `@${join(FILES, 'known-failing.txt')}`],
    // Whether the client's or the server's deadline passes first; ours answers with details.
    ...['--known-flaky', 'Timeouts/**'],
    ...['--', process.execPath, SERVER, descriptor],
  ]);
  await writeFile(join(dir, 'conformance.log'), said.output);
  const passed = PASSED.exec(said.output)?.[1] ?? '0';
  const late = said.output.match(LATE)?.length ?? 0;
  const failing = Number(KNOWN.exec(said.output)?.[1] ?? 0) - late;
  const unexplained = said.output
    .split('\n')
    .filter((line) => line.startsWith('\t') && line.trim() !== '')
    .filter((line) => !EXPLAINED.some((reason) => reason.test(line.trim())));
  const reasons = { code: unexplained.length === 0 ? 0 : 1, output: unexplained.join('\n') };
  return [
    accepting('connectconformance', `unary calls: ${passed} cases`, said, [
      /^[1-9]\d{2,} passed, 0 failed$/m,
    ]),
    accepting(
      'connectconformance',
      `${failing} cases fail for the reasons that are known, and ${late} of 42 deadlines by the server's clock`,
      reasons,
      [],
    ),
  ];
}
