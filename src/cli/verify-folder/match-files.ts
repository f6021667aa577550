/** Which files the bundles of a folder are about: by digest, whatever the names. */
import type { PresentFile } from '../../proof/set/compare-files.js';
import type { Step } from '../../proof/verify/report.js';
import type { JudgedBundle } from './judge-bundle.js';

/**
 * One file, or one bundle that is of none. `changed`: the bundle is of another file, which had this path. `missing`: no file
 * is the bundle's; the path is the one that it had. `extra`: no bundle is the file's. `failed` and `could_not_check` are
 * bundles; the path is that of their file, as far as they claim one that is there.
 */
export type MatchFinding =
  | { readonly status: 'ok' | 'extra'; readonly path: string }
  | { readonly status: 'changed' | 'missing'; readonly path: string; readonly bundle: string }
  | {
      readonly status: 'failed' | 'could_not_check';
      readonly path?: string | undefined;
      readonly bundle: string;
      readonly reason: string;
      readonly steps?: readonly Step[] | undefined;
    };

/** Matches bundles with files and yields each finding once: first the files that are ok, then all else. */
export async function* matchFiles(
  bundles: readonly JudgedBundle[],
  files: AsyncIterable<PresentFile>,
): AsyncGenerator<MatchFinding> {
  const byDigest = new Map<string, JudgedBundle[]>();
  for (const judged of bundles) {
    const { sha256 = '' } = judged;
    const same = byDigest.get(sha256);
    if (same === undefined) byDigest.set(sha256, [judged]);
    else same.push(judged);
  }
  const matched = new Map<JudgedBundle, string>();
  // Files without a verified bundle.
  const open = new Set<string>();
  for await (const { path, sha256 } of files) {
    const same = byDigest.get(sha256) ?? [];
    for (const judged of same) matched.set(judged, path);
    if (same.some(({ verdict }) => verdict === 'verified')) yield { status: 'ok', path };
    else open.add(path);
  }
  yield* matchRest(bundles, matched, open);
}

function* matchRest(
  bundles: readonly JudgedBundle[],
  matched: ReadonlyMap<JudgedBundle, string>,
  open: ReadonlySet<string>,
): Generator<MatchFinding> {
  const explained = new Set<string>();
  for (const judged of bundles) {
    const { bundle, verdict, names, reason, steps } = judged;
    const own = matched.get(judged);
    const named = names.find((name) => open.has(name));
    if (verdict !== 'verified') {
      const path = own ?? named;
      if (path !== undefined) explained.add(path);
      const status = verdict === 'not_verified' ? 'failed' : 'could_not_check';
      yield { status, path, bundle, reason, steps };
    } else if (own === undefined && named !== undefined && !explained.has(named)) {
      explained.add(named);
      yield { status: 'changed', path: named, bundle };
    } else if (own === undefined) {
      yield { status: 'missing', path: names[0] ?? bundle, bundle };
    }
  }
  for (const path of open) if (!explained.has(path)) yield { status: 'extra', path };
}
