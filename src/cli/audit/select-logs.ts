/** The logs to audit, with what is compared with them. */

import { toBase64 } from '../../proof/bytes/encoding.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { isSameKey, type NoteKey } from '../../proof/log/note.js';
import type { Trust, TrustedCosigner, TrustedLog } from '../../proof/verify/trust.js';
import { environmentName } from '../../protocol/environment.js';
import { UsageError } from '../cli.js';
import type { AuditFlags, WatchOptions } from './audit-flags.js';
import type { SourcedNote } from './checkpoint/audit-checkpoints.js';
import { tiledSource, witnessSource } from './source/log-source.js';
import type { Statements } from './source/statements.js';
import type { WatchedLog } from './watched-log.js';

/** Selects logs of the trust roots. `url` is where the one log is served, if not where the trust roots say. */
export function selectLogs({ logs }: Trust, flags: AuditFlags, url: string | undefined): TrustedLog[] {
  const { environment, origin } = flags;
  const wanted = logs
    .filter((log) => environment === undefined || environmentName(log.environment) === environment)
    .filter(({ key }) => origin === undefined || key.name === origin);
  if (wanted.length === 0) throw new UsageError('the trust roots have no such log');
  if (url !== undefined && wanted.length > 1)
    throw new UsageError('the trust roots have several logs: name the one at this URL by --origin');
  const placed = wanted.map((log) => (url === undefined ? log : { ...log, url }));
  const unpublished = placed.find((log) => log.url === '');
  if (unpublished)
    throw new UsageError(`the trust roots do not say where ${unpublished.key.name} is published`);
  return placed;
}

/** Everything that is compared with the logs. */
type Compared = {
  readonly trust: Trust;
  readonly notes: readonly SourcedNote[];
  readonly statements: Statements;
  readonly options: Pick<WatchOptions, 'mirrors' | 'witnesses' | 'policy'>;
};

/** Makes logs to audit of the selected ones. Throws UsageError if a checkpoint or statement is of another log. */
export function watchLogs(logs: readonly TrustedLog[], compared: Compared): WatchedLog[] {
  const origins = logs.map(({ key }) => key.name);
  assertSelected(origins, compared);
  const { trust, notes, statements, options } = compared;
  return logs.map((log) => {
    const { name } = log.key;
    return {
      log,
      cosigners: cosignersOf(compared, log),
      main: tiledSource('the checkpoint it shows now', log.url),
      mirrors: options.mirrors.map((url) => tiledSource(`the mirror ${url}`, url)),
      witnesses: options.witnesses.map((url) => witnessSource(url, name)),
      given: notes,
      expected: statements.get(name) ?? new Map(),
      isTrustedKey: trustedKeys(trust, log),
      otherOrigins: origins.filter((origin) => origin !== name),
    };
  });
}

/** The witnesses of the trust roots and those of the policy. Throws UsageError if the policy is not about the log. */
function cosignersOf({ trust, options: { policy } }: Compared, { key }: TrustedLog): TrustedCosigner[] {
  const isSame = (a: NoteKey, b: NoteKey) => isSameKey(a, b) && equalBytes(a.publicKey, b.publicKey);
  if (policy && !policy.logs.some((log) => isSame(log.key, key)))
    throw new UsageError(
      `the policy has no log ${key.name} with the key of the trust roots: select another by --origin`,
    );
  const added = (policy?.witnesses ?? []).filter(
    (witness) => !trust.cosigners.some((cosigner) => isSame(cosigner.key, witness.key)),
  );
  return [...trust.cosigners, ...added];
}

/** Rejects bundles of other logs, which would pass unchecked. */
function assertSelected(origins: readonly string[], { notes, statements }: Compared): void {
  for (const { note, from } of notes) {
    const [origin = ''] = note.split('\n', 1);
    if (!origins.includes(origin))
      throw new UsageError(`${from} is of the log ${origin}, which is not among those to audit`);
  }
  for (const [origin, leaves] of statements) {
    const [first] = leaves.values();
    if (!origins.includes(origin))
      throw new UsageError(`${first?.what} is of the log ${origin}, which is not among those to audit`);
  }
}

function trustedKeys({ dsseKeys }: Trust, { environment }: TrustedLog): (spki: Uint8Array) => boolean {
  const trusted = new Set(
    dsseKeys.filter((key) => key.environment === environment).map(({ spki }) => toBase64(spki)),
  );
  return (spki) => trusted.has(toBase64(spki));
}
