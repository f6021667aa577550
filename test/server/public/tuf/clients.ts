/** Clients of a TUF repository, as users have them: each keeps what it has seen in a folder of its own. */
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getTrustedRoot } from '@sigstore/tuf';
import { createVerifier } from 'sigstore';
import { Updater } from 'tuf-js';

/** Where the repository is, the root that a client starts from, and its folder. */
export type Place = { mirrorURL: string; rootPath: string; cachePath: string };

/** Updates a client. @returns the trusted root as it has it then. Rejects if it does not accept the repository */
type Update = (place: Place) => Promise<string>;

export const CLIENTS: Readonly<Record<string, Update>> = {
  'tuf-js': async ({ mirrorURL, rootPath, cachePath }) => {
    mkdirSync(cachePath, { recursive: true });
    if (!existsSync(join(cachePath, 'root.json'))) copyFileSync(rootPath, join(cachePath, 'root.json'));
    const updater = new Updater({
      metadataDir: cachePath,
      metadataBaseUrl: mirrorURL,
      targetDir: cachePath,
      targetBaseUrl: `${mirrorURL}/targets`,
      config: { fetchRetry: 0 },
    });
    const target = await updater.getTargetInfo('trusted_root.json');
    if (target === undefined) throw new Error('there is no trusted_root.json');
    return readFileSync(await updater.downloadTarget(target), 'utf8');
  },
  '@sigstore/tuf': async (place) => {
    const root = await getTrustedRoot({ ...place, retry: 0 });
    return JSON.stringify(root.tlogs.map(({ baseUrl }) => baseUrl));
  },
  'npm sigstore': async ({ mirrorURL, rootPath, cachePath }) => {
    await createVerifier({
      tufMirrorURL: mirrorURL,
      tufRootPath: rootPath,
      tufCachePath: cachePath,
      retry: 0,
    });
    const folder = encodeURIComponent(mirrorURL.replace(/^https?:\/\//, ''));
    return readFileSync(join(cachePath, folder, 'targets/trusted_root.json'), 'utf8');
  },
};
