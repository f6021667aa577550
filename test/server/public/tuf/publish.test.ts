/** What PublishTuf takes: nothing but what root keys have signed, one publication a version. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import t from 'tap';
import { TufService } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import { createLogger } from '../../../../src/server/core/logger.js';
import { parseSigningKey } from '../../../../src/server/keys/secrets.js';
import { localTufKey } from '../../../../src/server/keys/tuf-keys.js';
import { createMetrics } from '../../../../src/server/ops/metrics.js';
import { addTufGauges } from '../../../../src/server/ops/tuf-gauges.js';
import { createTufRenewal, tufStatusReader } from '../../../../src/server/process/worker/tuf-renewal.js';
import {
  makeRoot,
  makeSnapshot,
  makeTargets,
  makeTimestamp,
  metadataText,
  parseMetadata,
  signMetadata,
  type TufKeys,
  type TufMetadata,
  type TufSigner,
  type TufTarget,
} from '../../../../src/server/public/tuf/metadata.js';
import { publishTuf, renewTuf } from '../../../../src/server/public/tuf/publish.js';
import { findNewest, insertMetadata } from '../../../../src/server/public/tuf/store.js';
import { adminOf } from '../../../support/calling/admin.js';
import { openTuf } from './scene.js';

const { app, admin, mirrorURL, file } = await openTuf(t, { isWithoutWorker: true, apis: 2 });
const processes = app.baseUrls.map((baseUrl) => adminOf(app, baseUrl));
const { getTuf } = TufService.method;
const rootKey = localTufKey(generateKeyPairSync('ed25519').privateKey);
const stranger = localTufKey(generateKeyPairSync('ed25519').privateKey);
const online = ['online.pem', 'online-2.pem'].map((name) =>
  localTufKey(parseSigningKey(readFileSync(file(name), 'utf8'), 'log')),
);
const onlineKey = online[0]!.publicKey;
const keys: TufKeys = { rootKeys: [rootKey.publicKey], threshold: 1, onlineKey };
const files: TufTarget[] = [{ name: 'trusted_root.json', content: '{}' }];
const DAY_MS = 86_400_000;

/** The text of metadata with these signatures. */
async function signed(
  metadata: TufMetadata['root'] | TufMetadata['targets'],
  ...signers: TufSigner[]
): Promise<string> {
  await signMetadata(metadata, signers);
  return metadataText(metadata);
}

const root = (version: number, changed: Partial<TufKeys> = {}, nowMs = Date.now()) =>
  makeRoot(version, { ...keys, ...changed }, nowMs);
const targets = (version: number, nowMs = Date.now(), of = files) => makeTargets(version, of, nowMs);
const publish = (input: Record<string, unknown>, by = admin) =>
  by.call(TufService.method.publishTuf, { files, ...input });
const stored = () => app.pool`SELECT name, md5(content) FROM tuf_file ORDER BY name`;

/** The root and targets as JSON, with a change made to what is signed. */
async function edited(
  metadata: TufMetadata['root'] | TufMetadata['targets'],
  change: (signed: Record<string, unknown>) => void,
): Promise<string> {
  const json = JSON.parse(await signed(metadata, rootKey)) as { signed: Record<string, unknown> };
  change(json.signed);
  return JSON.stringify(json);
}

t.test('the first publication', async (t) => {
  const good = await signed(targets(7), rootKey);
  t.match(await publish({ targets: good }), {
    code: 'request.invalid',
    message: /^\/root is missing: there is no repository yet/,
  });
  const text = await signed(root(1), rootKey);
  for (const [message, changed] of [
    [
      /\/targets is not signed by 1 of the targets keys of root version 1/,
      { targets: await signed(targets(7), stranger) },
    ],
    [
      /\/targets does not name the given files with their length and SHA-256/,
      { files: [{ name: 'trusted_root.json', content: '{ }' }] },
    ],
    [/\/targets does not name the given files/, { files: [...files, { name: 'other.json', content: '{}' }] }],
    [/\/targets has expired/, { targets: await signed(targets(7, Date.now() - 366 * DAY_MS), rootKey) }],
    [/\/root has expired/, { root: await signed(root(1, {}, Date.now() - 366 * DAY_MS), rootKey) }],
    [
      /\/root names the online key for root or targets/,
      { root: await signed(root(1, { rootKeys: [rootKey.publicKey, onlineKey] }), rootKey) },
    ],
    [/\/root is not signed by 1 of the root keys/, { root: await signed(root(1), online[0]!) }],
    [
      /\/root is not signed by 2 of the root keys/,
      {
        root: await signed(
          root(1, { rootKeys: [rootKey.publicKey, stranger.publicKey], threshold: 2 }),
          rootKey,
        ),
      },
    ],
    [
      /\/root is not signed/,
      {
        root: await edited(root(1), (signed) => {
          signed.expires = '2099-01-01T00:00:00Z';
        }),
      },
    ],
    [
      /\/root has an expiry that is not a time/,
      {
        root: await edited(root(1), (signed) => {
          signed.expires = 'never';
        }),
      },
    ],
    [
      /\/root has a version that is not a positive integer/,
      {
        root: await edited(root(1), (signed) => {
          signed.version = 1.5;
        }),
      },
    ],
    [/\/root is not root metadata of TUF/, { root: text.slice(0, -20) }],
    [/\/root is not root metadata of TUF/, { root: '[]' }],
    [/\/root is not root metadata of TUF/, { root: 'null' }],
    [/\/root is not root metadata of TUF/, { root: '{"signed":null,"signatures":[]}' }],
    [/\/root is not root metadata of TUF: expected 'root', got targets/, { root: good }],
    [/\/targets is not targets metadata of TUF/, { targets: '['.repeat(100_000) }],
    [/root.*500000/, { root: ' '.repeat(500_001) }],
    [/name must be 1 to 64 lower-case letters/, { files: [{ name: '../x', content: '{}' }] }],
    [/files/, { files: [] }],
  ] as const) {
    t.match(
      await publish({ root: text, targets: good, ...changed }),
      { code: 'request.invalid', message },
      String(message),
    );
  }
  const other = await signed(root(1, { onlineKey: stranger.publicKey }), rootKey);
  t.match(await publish({ root: other, targets: good }), {
    code: 'service.unavailable',
    message: /TUF_KEY_FILE does not hold the online key/,
  });
  t.same(await stored(), [], 'nothing of it was stored');
  t.match(await publish({ root: text, targets: good }), { code: 'ok' });
  t.equal(await (await fetch(`${mirrorURL}/7.targets.json`)).text(), good);
});

t.test('a version is taken once', async (t) => {
  const before = await stored();
  for (const input of [
    { targets: await signed(targets(7), rootKey) },
    { targets: await signed(targets(6), rootKey) },
    { root: await signed(root(1), rootKey), targets: await signed(targets(8), rootKey) },
    { root: await signed(root(3), rootKey), targets: await signed(targets(8), rootKey) },
  ]) {
    t.match(await publish(input), { code: 'tuf.conflict', grpcCode: 10 });
  }
  t.same(await stored(), before);
  const next = { rootKeys: [stranger.publicKey] };
  t.match(
    await publish({
      root: await signed(root(2, next), stranger),
      targets: await signed(targets(8), stranger),
    }),
    {
      code: 'request.invalid',
      message: /\/root is not signed by 1 of the root keys of root version 1/,
    },
  );
  t.same(await stored(), before);
});

t.test(
  'of several operators at once, over two processes, one publishes, and clients see its metadata only',
  async (t) => {
    const rivals = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const own = [{ name: 'trusted_root.json', content: `{"rival":${i}}` }];
        return {
          root: await signed(root(2), rootKey),
          targets: await signed(targets(8, Date.now(), own), rootKey),
          files: own,
        };
      }),
    );
    const codes = (await Promise.all(rivals.map((rival, i) => publish(rival, processes[i % 2]))))
      .map(({ code }) => code)
      .sort();
    t.same(codes, ['ok', ...Array.from({ length: 7 }, () => 'tuf.conflict')]);
    const served = await (await fetch(`${mirrorURL}/8.targets.json`)).text();
    const winner = rivals.find(({ targets }) => targets === served);
    t.match((await admin.ask(getTuf, {})).published, winner?.files);
  },
);

t.test('a publication that fails at its last step leaves nothing', async (t) => {
  const before = await stored();
  const publication = {
    root: await signed(root(3), rootKey),
    targets: await signed(targets(9), rootKey),
    files,
  };
  await t.rejects(
    app.pool.begin(async (tx) => {
      await publishTuf(tx, online, publication);
      throw new Error('the process ends here');
    }),
    /the process ends here/,
  );
  t.same(await stored(), before);
  t.match(await publish(publication), { code: 'ok' }, 'and can be made again');
});

t.test('workers renew snapshot and timestamp a day after the last time, and one of them does', async (t) => {
  const newest = async () =>
    parseMetadata('timestamp', await (await fetch(`${mirrorURL}/timestamp.json`)).text()).signed;
  const before = await newest();
  t.same(
    await Promise.all([renewTuf(app.pool, online), renewTuf(app.pool, [])]),
    [false, false],
    'not before it is due',
  );
  await age(1.5 * DAY_MS);
  await t.rejects(renewTuf(app.pool, [stranger]), /TUF_KEY_FILE does not hold the online key [0-9a-f]{64}/);
  const renewed = await Promise.all(Array.from({ length: 4 }, () => renewTuf(app.pool, online)));
  t.same(renewed.sort(), [false, false, false, true]);
  const after = await newest();
  t.ok(after.version > before.version);
  t.ok(Date.parse(after.expires) - Date.now() > 6.9 * DAY_MS);
});

t.test('what expires or differs is a remark', async (t) => {
  await age(5 * DAY_MS);
  const { remarks } = await admin.ask(getTuf, {});
  t.match(remarks, [
    /^trusted_root\.json differs/,
    /^trusted_root\.test\.json differs/,
    /^signing_config/,
    /^snapshot expires at .*no worker/,
    /^timestamp expires/,
  ]);
});

t.test('a worker warns of each once, and metrics show it', async (t) => {
  const readStatus = tufStatusReader(app.pool);
  const lines: string[] = [];
  const destination = new Writable({
    write: (line: Buffer, _, done) => {
      lines.push(String(line));
      done();
    },
  });
  const log = createLogger({ level: 'warn', destination });
  const look = createTufRenewal({ pool: app.pool, log }, [], readStatus);
  await look();
  await look();
  t.equal(lines.filter((line) => line.includes('"reason":"trusted_root.json differs')).length, 1);
  t.match(lines.at(-1), /TUF_KEY_FILE does not hold the online key/, 'and of the key that it lacks');
  const metrics = createMetrics();
  addTufGauges(metrics, readStatus);
  t.match(
    (await metrics.read()).text,
    /attest_tuf_expiry_timestamp_seconds\{role="root"\} \d+\n(.*\n)*attest_tuf_outdated 1\n/,
  );
});

/** Signs snapshot and timestamp as if so much time had passed since. */
async function age(ms: number): Promise<void> {
  const newest = await findNewest(app.pool);
  if (newest === undefined) throw new Error('there is no repository');
  const [key] = online;
  const snapshot = makeSnapshot(newest.snapshot.signed.version + 1, newest.targets, Date.now() - ms);
  await signMetadata(snapshot, [key!]);
  const timestamp = makeTimestamp(newest.timestamp.signed.version + 1, snapshot, Date.now() - ms);
  await signMetadata(timestamp, [key!]);
  await insertMetadata(app.pool, 'snapshot', snapshot);
  await insertMetadata(app.pool, 'timestamp', timestamp);
}
