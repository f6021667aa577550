/** Bundles named on the command line. */
import { open } from 'node:fs/promises';
import { SET_MEDIA_TYPE } from '../../proof/set/create-set.js';
import { MAX_BUNDLE_CHARACTERS } from '../../proof/verify/read/read-bundle.js';
import { UsageError } from '../cli.js';
import { inputFileSize, readInputFile } from './input-file.js';

/** Reads a bundle. Throws UsageError if it cannot be read, is too large, or is the set file of a folder. */
export async function readBundleFile(path: string): Promise<Uint8Array> {
  if ((await inputFileSize(path)) > MAX_BUNDLE_CHARACTERS && (await isSetFile(path)))
    throw new UsageError(
      `${path} is a set file, not a bundle: give it with --set, and the bundle with --bundle`,
    );
  return readInputFile(path, 'a bundle', MAX_BUNDLE_CHARACTERS);
}

/** Whether a file begins as a set file does, which may be too large to be read at once. */
async function isSetFile(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(256) });
    return buffer.subarray(0, bytesRead).toString().includes(`"${SET_MEDIA_TYPE}"`);
  } finally {
    await file.close();
  }
}
