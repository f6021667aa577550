import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Editors and git write several files for one change. */
const QUIET_MS = 100;

/** Changes of files below some folders. */
type Changes = {
  /** Resolves after the next change, or one since the last call, once nothing changes for 100 ms; or when closed. */
  next(): Promise<void>;
  close(): void;
};

/** Watches folders and all folders in them, new ones too. */
export function watchFolders(folders: readonly string[]): Changes {
  const watchers = new Map<string, FSWatcher>();
  let changed = false;
  let closed = false;
  let wake = () => {};
  const watchNew = () => {
    for (const path of folders.flatMap(foldersIn)) {
      if (!watchers.has(path)) watchers.set(path, watchFolder(path));
    }
  };
  const watchFolder = (path: string) =>
    watch(path, () => {
      changed = true;
      wake();
    }).on('error', () => {
      watchers.get(path)?.close();
      watchers.delete(path);
    });
  watchNew();
  return {
    next: async () => {
      while (!(changed || closed)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      while (changed && !closed) {
        changed = false;
        watchNew();
        await delay(QUIET_MS);
      }
    },
    close: () => {
      closed = true;
      for (const watcher of watchers.values()) watcher.close();
      wake();
    },
  };
}

/** Not `watch` with `recursive`: on Linux it loses a file that an editor replaces. */
function foldersIn(folder: string): string[] {
  const inside = readdirSync(folder, { recursive: true, withFileTypes: true });
  return [
    folder,
    ...inside.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name)),
  ];
}
