import { once } from 'node:events';
import type { Command } from 'commander';
import { toHex } from '../../../proof/bytes/encoding.js';
import { headJson } from '../../../proof/set/head.js';
import { printablePath } from '../../../proof/set/path.js';
import { readSet, type SetItem } from '../../../proof/set/read-set.js';
import { countFiles } from '../../../proof/set/verify-set.js';
import { type Cli, print } from '../../cli.js';
import { formatSize } from '../../output/progress.js';
import { openSet } from '../../sets/set-file.js';

/** `attest set show`. */
export function addShow(command: Command, cli: Cli): void {
  command
    .description('list the files of a set, and what is attested of it')
    .argument('<set>', 'set file')
    .option('--json', 'print one line of JSON: head and entries')
    .action((set: string, flags: { json?: boolean }) => show(cli, set, flags));
}

/** Reads the set twice: first to its end, so that nothing is printed of one that is wrong. */
async function show(cli: Cli, set: string, { json }: { json?: boolean }): Promise<void> {
  const { items, finish } = readSet(await openSet(set));
  let bytes = 0;
  for await (const { entry } of items) bytes += entry?.bytes ?? 0;
  const { head, headSha256, withheld, ignored } = await finish();
  const format = json ? entryJson : entryLine;
  if (json) {
    const summary = { head: headJson(head), head_sha256: headSha256, bytes, withheld, ignored };
    cli.stdout.write(`${JSON.stringify(summary).slice(0, -1)},"entries":[`);
  }
  for await (const item of readSet(await openSet(set)).items) {
    const text = format(item);
    if (!cli.stdout.write(json && item.index > 0 ? `,${text}` : text)) await once(cli.stdout, 'drain');
  }
  if (json) {
    print(cli, ']}');
    return;
  }
  const without = withheld > 0 ? `, ${withheld} of them withheld` : '';
  print(cli, `\n${countFiles(head.entries)}${without}, ${formatSize(bytes)}`);
  print(cli, `Attested: sha256:${headSha256}`);
  if (head.notBefore !== undefined) {
    const { origin, treeSize, rootHash } = head.notBefore;
    print(cli, `Closed after checkpoint ${treeSize} of ${origin}, root ${rootHash}`);
  }
}

function entryJson({ entry, leaf }: SetItem): string {
  return JSON.stringify(entry ?? { leaf: toHex(leaf) });
}

/** As sha256sum prints it; a withheld entry by its leaf. */
function entryLine({ entry, leaf }: SetItem): string {
  return entry ? `${entry.sha256}  ${printablePath(entry.path)}\n` : `withheld  leaf ${toHex(leaf)}\n`;
}
