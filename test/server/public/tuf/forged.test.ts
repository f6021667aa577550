/** What clients do not accept of a mirror that lies. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { parseSigningKey } from '../../../../src/server/keys/secrets.js';
import { localTufKey } from '../../../../src/server/keys/tuf-keys.js';
import {
  makeRoot,
  makeSnapshot,
  makeTargets,
  makeTimestamp,
  metadataText,
  publicKeysOf,
  signMetadata,
  type TufMetadata,
  type TufSigner,
} from '../../../../src/server/public/tuf/metadata.js';
import { findNewest } from '../../../../src/server/public/tuf/store.js';
import { openTuf } from './scene.js';

const { app, mirrorURL, file, done, update, replaceLogKey } = await openTuf(t);
await done('init', '--key', file('root.pem'), '--out', file('root.json'));
const first = await newest();
await replaceLogKey();
await done('publish', '--key', file('root.pem'));
const second = await newest();
const keyOf = (name: string) => localTufKey(parseSigningKey(readFileSync(file(name), 'utf8'), 'log'));
const [rootKey, online] = [keyOf('root.pem'), keyOf('online.pem')];
const stranger = localTufKey(generateKeyPairSync('ed25519').privateKey);
const DAY_MS = 86_400_000;

async function newest(): Promise<TufMetadata> {
  const found = await findNewest(app.pool);
  if (found === undefined) throw new Error('there is no repository');
  return found;
}

/** The text of metadata with this signature alone. */
async function signed(metadata: TufMetadata[keyof TufMetadata], signer: TufSigner): Promise<string> {
  metadata.signatures = {};
  await signMetadata(metadata, [signer]);
  return metadataText(metadata);
}

/** A mirror that has other files in the places of some. @returns its URL */
async function mirrorWith(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').slice(1);
    const answer = await fetch(`${mirrorURL}/${path}`);
    response
      .writeHead(path in files ? 200 : answer.status)
      .end(files[path] ?? Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const nameOf = (role: 'root' | 'snapshot' | 'targets', metadata: TufMetadata[keyof TufMetadata]) =>
  `${metadata.signed.version}.${role}.json`;
const { version } = second.timestamp.signed;
const now = Date.now();
const otherTargets = makeTargets(
  second.targets.signed.version,
  [{ name: 'trusted_root.json', content: '{}' }],
  now,
);
const hash = second.targets.signed.targets['trusted_root.json']?.hashes.sha256;

const FORGERIES: Readonly<Record<string, [files: Record<string, string>, error: RegExp]>> = {
  'an expired timestamp': [
    { 'timestamp.json': await signed(makeTimestamp(version + 1, second.snapshot, now - 8 * DAY_MS), online) },
    /expired/i,
  ],
  'a timestamp by another key': [
    { 'timestamp.json': await signed(makeTimestamp(version + 1, second.snapshot, now), stranger) },
    /signed by 0\/1/,
  ],
  'a timestamp by the root key': [
    { 'timestamp.json': await signed(makeTimestamp(version + 1, second.snapshot, now), rootKey) },
    /signed by 0\/1/,
  ],
  'targets by the online key': [
    { [nameOf('targets', second.targets)]: await signed(otherTargets, online) },
    /Expected (length|hash)/,
  ],
  'targets and all above it by the online key': [await forgedBelow(otherTargets), /signed by 0\/1/],
  'a snapshot that the timestamp does not name': [
    { [nameOf('snapshot', second.snapshot)]: metadataText(first.snapshot) },
    /Expected (length|hash)/,
  ],
  'the targets of before under the new name': [
    { [nameOf('targets', second.targets)]: metadataText(first.targets) },
    /Expected (length|hash)/,
  ],
  'another trusted root': [{ [`targets/${hash}.trusted_root.json`]: '{}' }, /length|hash|download/i],
  'a root that its predecessor has not signed': [
    { '2.root.json': await signed(rootBy(stranger), stranger) },
    /signed by 0\/1/,
  ],
  'a root of a version left out': [{ '2.root.json': await signed(rootBy(rootKey, 3), rootKey) }, /version/i],
  'a truncated timestamp': [{ 'timestamp.json': metadataText(second.timestamp).slice(0, -30) }, /JSON/],
  'a huge timestamp': [
    { 'timestamp.json': `${metadataText(second.timestamp)}${' '.repeat(1_000_000)}` },
    /length|large|max/i,
  ],
};

function rootBy({ publicKey }: TufSigner, at = 2): TufMetadata['root'] {
  const [onlineKey] = publicKeysOf(second.root, 'timestamp');
  return makeRoot(at, { rootKeys: [publicKey], threshold: 1, onlineKey: onlineKey! }, now);
}

/** Targets, and a snapshot and a timestamp that name them, all signed by the online key. */
async function forgedBelow(targets: TufMetadata['targets']): Promise<Record<string, string>> {
  const text = await signed(targets, online);
  const snapshot = makeSnapshot(version + 1, targets, now);
  const snapshotText = await signed(snapshot, online);
  const timestamp = await signed(makeTimestamp(version + 1, snapshot, now), online);
  return {
    [nameOf('targets', targets)]: text,
    [nameOf('snapshot', snapshot)]: snapshotText,
    'timestamp.json': timestamp,
  };
}

for (const [what, [files, error]] of Object.entries(FORGERIES)) {
  t.test(`${what} is not accepted`, async (t) => {
    const url = await mirrorWith(t, files);
    for (const [name, outcome] of Object.entries(await update(`fresh ${what}`, url))) {
      t.match(outcome, /^rejected: /, name);
      t.match(outcome, error, name);
    }
  });
}

t.test(
  'a mirror that goes back to an earlier version is not accepted by clients that have seen the later',
  async (t) => {
    const files: Record<string, string> = {};
    const url = await mirrorWith(t, files);
    for (const [name, text] of Object.entries(await update('seen', url)))
      t.match(text, 'live-2.log.example.com', name);
    files['timestamp.json'] = metadataText(first.timestamp);
    for (const [name, outcome] of Object.entries(await update('seen', url)))
      t.match(outcome, /^rejected: .*version/is, name);
  },
);
