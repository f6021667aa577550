import { toHex } from '../../../proof/bytes/encoding.js';
import { createSha256 } from '../../../proof/bytes/primitives.js';

/** Hashes a file of any size piece by piece, and reports how many per cent are done. Returns its SHA-256 in hex. */
export async function hashFile(file: File, report: (percent: number) => void): Promise<string> {
  const hash = createSha256();
  const reader = file.stream().getReader();
  let bytes = 0;
  let shown = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return toHex(hash.digest());
    hash.update(value);
    bytes += value.length;
    const percent = Math.floor((bytes / file.size) * 100);
    if (percent === shown) continue;
    shown = percent;
    report(percent);
  }
}
