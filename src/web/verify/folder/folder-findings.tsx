import type { FileFinding } from '../../../proof/set/compare-files.js';
import { BAD_FINDINGS, tallyText } from '../../../proof/set/folder-tally.js';
import { printablePath } from '../../../proof/set/path.js';
import type { CheckStatus } from '../../../proof/verify/report.js';
import { StatusIcon } from '../result/status.tsx';
import type { ComparedFolder } from './compare-folder.js';

/** What each kind means, after its number. */
const MEANINGS: Readonly<Record<FileFinding['status'], string>> = {
  ok: 'as in the set',
  changed: 'of another content than in the set',
  missing: 'in the set and not in the folder',
  extra: 'in the folder and not in the set',
  withheld: 'in the set by their hashes alone',
};

/** What became of the files of a folder: how many of each kind, and the first paths. */
export function FolderFindings({ compared }: { compared: ComparedFolder }) {
  const { folder, tally, ok, evidence } = compared;
  const { counts, paths } = tally;
  return (
    <section class="files" aria-labelledby="files-title">
      <h2 id="files-title">
        The files of <bdi>{folder.name}</bdi>
      </h2>
      <p class="quiet">{tallyText(tally)}.</p>
      {BAD_FINDINGS.filter((kind) => counts[kind] > 0).map((kind) => (
        <div key={kind}>
          <Kind kind={kind} count={counts[kind]} status="failed" />
          <Paths paths={paths[kind]} count={counts[kind]} />
        </div>
      ))}
      {counts.withheld > 0 && <Kind kind="withheld" count={counts.withheld} status="not_checked" />}
      {counts.ok > 0 && (
        <>
          <Kind kind="ok" count={counts.ok} status="passed" />
          <details>
            <summary>Files that are as in the set</summary>
            <Paths paths={ok} count={counts.ok} />
          </details>
        </>
      )}
      <p class="quiet">Browsers show pages no symbolic links: those are not compared.</p>
      {folder.ignored > 0 && (
        <p class="quiet">Left out by .attestignore in the folder: {folder.ignored.toLocaleString()}.</p>
      )}
      {evidence.length > 0 && (
        <p class="quiet">
          Not counted, because they are the set file or the bundle: {evidence.map(printablePath).join(', ')}.
        </p>
      )}
    </section>
  );
}

type KindProps = { kind: FileFinding['status']; count: number; status: CheckStatus };

function Kind({ kind, count, status }: KindProps) {
  return (
    <h3 class={`kind ${status}`} data-kind={kind}>
      <StatusIcon status={status} size={20} />
      <span>
        {count.toLocaleString()} {kind} <span class="quiet">{MEANINGS[kind]}</span>
      </span>
    </h3>
  );
}

function Paths({ paths, count }: { paths: readonly string[]; count: number }) {
  return (
    <ul class="paths">
      {paths.map((path) => (
        <li key={path}>
          <code>
            <bdi>{printablePath(path)}</bdi>
          </code>
        </li>
      ))}
      {count > paths.length && <li>and {(count - paths.length).toLocaleString()} more</li>}
    </ul>
  );
}
