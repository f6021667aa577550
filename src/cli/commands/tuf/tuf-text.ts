import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Tuf } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import type { TrustedRoot } from '../../../proof/bundle/trusted-root.js';
import { fromBase64, toHex } from '../../../proof/bytes/encoding.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { printable } from '../../../protocol/printable.js';
import { type TufKeys, tufKeyId } from '../../../server/public/tuf/metadata.js';
import { formatTable } from '../../output/table.js';

/** A repository as a table of its roles, with what an operator has to do. */
export function tufText({ roles, remarks }: Tuf): string {
  if (roles.length === 0) return 'there is no TUF repository: make one with attest tuf init';
  const rows = roles.map(({ name, version, expiresAt, keyIds }) => [
    name,
    String(version),
    expiresAt === undefined ? '-' : timestampDate(expiresAt).toISOString(),
    keyIds.map((id) => id.slice(0, 16)).join(', '),
  ]);
  return [formatTable([['ROLE', 'VERSION', 'EXPIRES', 'KEYS'], ...rows]), ...remarks.map(printable)].join(
    '\n',
  );
}

/** What publishing changes: a line for each log and authority that is new, changed or gone, and the keys of a new root. */
export function changesText({ published, current }: Tuf, keys: TufKeys | undefined): string {
  const changes = current.flatMap(({ name, content }) => {
    const before = entriesOf(published.find((one) => one.name === name)?.content);
    const after = entriesOf(content);
    const gone = [...before].filter(([json]) => !after.has(json)).map(([, text]) => `- ${name}: ${text}`);
    return [
      ...gone,
      ...[...after].filter(([json]) => !before.has(json)).map(([, text]) => `+ ${name}: ${text}`),
    ];
  });
  const lines = changes.length === 0 ? ['the trust roots are as they were published'] : changes;
  return [...lines, ...(keys === undefined ? [] : [keysText(keys)])].map(printable).join('\n');
}

function keysText({ rootKeys, threshold, onlineKey }: TufKeys): string {
  const ids = rootKeys.map(tufKeyId).join(', ');
  return `root: ${threshold} of the keys ${ids} sign root and targets, ${tufKeyId(onlineKey)} snapshot and timestamp`;
}

/** The logs and authorities of a Sigstore TrustedRoot: the JSON of each, with a line about it. */
function entriesOf(content = '{}'): Map<string, string> {
  const { tlogs = [], timestampAuthorities = [] } = JSON.parse(content) as Partial<TrustedRoot>;
  const logs = tlogs.map((log) => {
    const { rawBytes, validFor } = log.publicKey;
    return [
      JSON.stringify(log),
      `log ${log.baseUrl} with the key ${rawBytes}${untilText(validFor)}`,
    ] as const;
  });
  const authorities = timestampAuthorities.map((authority) => {
    const { subject, certChain, validFor } = authority;
    const hashes = certChain.certificates.map(({ rawBytes }) => toHex(sha256(fromBase64(rawBytes))));
    const text = `time-stamping authority ${subject.commonName} with certificates of SHA-256 ${hashes.join(', ')}`;
    return [JSON.stringify(authority), text + untilText(validFor)] as const;
  });
  return new Map([...logs, ...authorities]);
}

function untilText({ end }: { end?: string }): string {
  return end === undefined ? '' : `, until ${end}`;
}
