/**
 * The files of a folder that was dropped or chosen. Browsers leave out symbolic links and empty folders. Chromium's
 * getAsFileSystemHandle leaves out further files by their names, without notice, so that it cannot be used.
 */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { MAX_ENTRIES } from '../../../proof/set/entry.js';
import { printable } from '../../../protocol/printable.js';

/** A file in a folder; `path` is relative to it, with `/`. */
export type FolderFile = { readonly path: string; readonly file: File };

/** A folder whose files are still to be listed. `list` throws FormatError, or what the browser throws. */
export type FolderSource = { readonly name: string; list(): Promise<FolderFile[]> };

/** The files and folders that were dropped. To be called while the event is handled: later they are gone. */
export function takeDropped(transfer: DataTransfer | null): (File | FolderSource)[] {
  const items = [...(transfer?.items ?? [])].filter(({ kind }) => kind === 'file');
  return items.flatMap((item) => droppedFolder(item) ?? item.getAsFile() ?? []);
}

/** The folder that was chosen, from its files; none if there are none. */
export function chosenFolder(chosen: readonly File[]): FolderSource[] {
  const [name] = chosen[0]?.webkitRelativePath.split('/') ?? [];
  if (name === undefined) return [];
  const files = chosen.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1), file }));
  return [{ name: printable(name), list: async () => files }];
}

function droppedFolder(item: DataTransferItem): FolderSource | undefined {
  const entry = item.webkitGetAsEntry?.();
  if (!entry?.isDirectory) return undefined;
  const list = () => takeAll(filesOfEntry(entry as FileSystemDirectoryEntry, ''));
  return { name: printable(entry.name), list: isPageOnDisk() ? () => list().catch(explain) : list };
}

/** Whether the page is a file itself: Chromium lets such pages read a folder by an input for folders only. */
export function isPageOnDisk(): boolean {
  return location.protocol === 'file:';
}

async function takeAll(files: AsyncIterable<FolderFile>): Promise<FolderFile[]> {
  const all: FolderFile[] = [];
  for await (const file of files) {
    all.push(file);
    if (all.length > MAX_ENTRIES) {
      throw new FormatError(`The folder has more than ${MAX_ENTRIES.toLocaleString()} files.`);
    }
  }
  return all;
}

/** `readEntries` gives the first ones only, each time. */
async function* filesOfEntry(folder: FileSystemDirectoryEntry, path: string): AsyncGenerator<FolderFile> {
  const reader = folder.createReader();
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (entries.length === 0) return;
    const files = entries.filter(({ isFile }) => isFile) as FileSystemFileEntry[];
    yield* await Promise.all(files.map((entry) => openEntry(entry, path)));
    for (const entry of entries) {
      if (entry.isDirectory) yield* filesOfEntry(entry as FileSystemDirectoryEntry, `${path}${entry.name}/`);
    }
  }
}

async function openEntry(entry: FileSystemFileEntry, path: string): Promise<FolderFile> {
  const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
  return { path: `${path}${entry.name}`, file };
}

function explain(error: unknown): never {
  if (error instanceof FormatError) throw error;
  throw new FormatError(
    'This browser does not let a page on a disk read a folder that is dropped with other files: drop it alone, or choose it.',
  );
}
