/** What `attest tuf` says of keys that are not what they should be, and of a service that lies to its operator. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { fromJson } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { type Tuf, TufSchema, TufService } from '../../gen/attestation/admin/v1/tuf_pb.js';
import { openTuf } from '../server/public/tuf/scene.js';
import { runHere } from '../support/calling/run-cli.js';
import { serveRpc } from '../support/servers/rpc-server.js';

const { app, admin, file, tuf, done } = await openTuf(t);
await done('init', '--key', file('root.pem'), '--key', file('spare.pem'), '--out', file('root.json'));
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
writeFileSync(file('ec.pem'), privateKey.export(pkcs8));
writeFileSync(file('ec-public.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
writeFileSync(file('stranger.pem'), generateKeyPairSync('ed25519').privateKey.export(pkcs8));
writeFileSync(file('truncated.pem'), String(privateKey.export(pkcs8)).slice(0, 60));
writeFileSync(file('huge.pem'), ' '.repeat(1024 * 1024 + 1));
writeFileSync(file('empty.pem'), '');
const stored = () => app.pool`SELECT name, md5(content) FROM tuf_file ORDER BY name`;

t.test('a wrong key or flag is named, and nothing is published', async (t) => {
  const before = await stored();
  const key = ['--key', file('root.pem')];
  for (const [args, code, stderr] of [
    [['publish'], 2, /required option '--key <file>' not specified/],
    [['publish', '--key', file('gone.pem')], 2, /gone\.pem: .*cannot be read: ENOENT/],
    [['publish', '--key', file('ec.pem')], 2, /ec\.pem: it is a key of type ec, not Ed25519/],
    [['publish', '--key', file('ec-public.pem')], 2, /ec-public\.pem: it is a key of type ec, not Ed25519/],
    [['publish', '--key', file('truncated.pem')], 2, /truncated\.pem: its private key cannot be read/],
    [['publish', '--key', file('huge.pem')], 2, /huge\.pem is larger than 1 MiB/],
    [['publish', '--key', file('empty.pem')], 2, /empty\.pem: it is not a private key in PKCS#8 PEM/],
    [
      ['publish', '--key', file('stranger.pem')],
      2,
      /stranger\.pem is not a key of root version 1, which are [0-9a-f]{64}, /,
    ],
    [['publish', ...key, '--key', file('stranger.pem')], 2, /stranger\.pem is not a key of root version 1/],
    [['rotate', ...key], 2, /nothing is to be replaced: give --new-key, --threshold or --online-key/],
    [['rotate', ...key, '--threshold', '3'], 2, /the threshold 3 needs as many root keys/],
    [['rotate', ...key, '--threshold', '0'], 2, /--threshold is not a whole number from 1 to 8/],
    [['rotate', ...key, '--new-key', file('ec.pem')], 2, /ec\.pem: it is a key of type ec/],
    [['rotate', ...key, '--new-key', file('no/such/folder.pem')], 2, /folder\.pem cannot be written: ENOENT/],
    [['rotate', ...key, '--new-key', file('online.pem')], 1, /names the online key for root or targets/],
    [
      ['init', ...key, '--threshold', '2', '--out', file('other.json')],
      2,
      /--threshold 2 needs as many --key/,
    ],
    [
      ['init', '--key', file('stranger.pem'), '--out', file('other.json')],
      2,
      /stranger\.pem is not a key of root version 1/,
    ],
  ] as const) {
    t.match(await tuf(...args), { code, stderr }, args.join(' '));
  }
  t.same(await stored(), before);
  t.notOk(existsSync(file('other.json')));
});

t.test('nothing is signed without a confirmation', async (t) => {
  const before = await stored();
  const env = { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: admin.token };
  const args = ['tuf', 'publish', '--key', file('root.pem')];
  t.match(await runHere(args, { env }), { code: 2, stderr: /confirm with --yes/ });
  t.match(await runHere(args, { env, typed: 'n\n' }), {
    code: 1,
    stderr: /the trust roots are as they were published\nSign and publish this\? .*not confirmed/s,
  });
  t.same(await stored(), before);
  t.match(await runHere([...args, '--json'], { env, typed: 'y\n' }), {
    code: 0,
    stdout: /^\{"roles":\[\{"name":"root","version":"?1"?,/,
  });
});

/** Answers to `publish` and `rotate` of a service that shows another repository. @returns whether it was sent anything */
async function lieTo(
  t: Test,
  change: (tuf: Tuf) => Partial<Pick<Tuf, 'root' | 'onlineKeys'>>,
  args: readonly string[],
) {
  const honest = fromJson(TufSchema, await admin.ask(TufService.method.getTuf, {}));
  let isSent = false;
  const { baseUrl } = await serveRpc(t, (router) => {
    router.service(TufService, {
      getTuf: () => ({ ...honest, ...change(honest) }),
      publishTuf: () => {
        isSent = true;
        return honest;
      },
    });
  });
  const ended = await runHere(['tuf', ...args, '--yes'], {
    env: { ATTEST_URL: baseUrl, ATTEST_ADMIN_TOKEN: 'x'.repeat(30) },
  });
  return { ...ended, isSent };
}

t.test('a root that the root keys have not signed is not followed', async (t) => {
  const edit = (root: string, from: RegExp, to: string) => {
    if (!from.test(root)) throw new Error('nothing is edited');
    return { root: root.replace(from, to) };
  };
  for (const args of [
    ['publish', '--key', file('root.pem')],
    ['rotate', '--key', file('root.pem'), '--new-key', file('root-2.pem')],
  ]) {
    for (const [change, stderr] of [
      [
        ({ root }) => edit(root, /"threshold":1/, '"threshold":2'),
        /the root that the service has is not signed by 2 of the root keys/,
      ],
      [
        ({ root }) => edit(root, /"expires":"2/, '"expires":"3'),
        /the root that the service has is not signed by 1 of the root keys/,
      ],
      [
        ({ root }) => ({ root: root.slice(0, -9) }),
        /the root that the service has is not root metadata of TUF/,
      ],
      [
        ({ root }) => ({ root: root + ' '.repeat(500_000) }),
        /the root that the service has is larger than 500000 bytes/,
      ],
      [
        () => ({ root: '{}' }),
        /the root that the service has is not root metadata of TUF: signed is not defined/,
      ],
      [() => ({ root: '' }), /there is no TUF repository/],
    ] as [Parameters<typeof lieTo>[1], RegExp][]) {
      t.match(await lieTo(t, change, args), { code: 1, stderr, isSent: false }, String(stderr));
    }
  }
});

t.test('a service without an online key, or of unreadable trust roots, is named', async (t) => {
  const init = ['init', '--key', file('new.pem'), '--out', file('new.json')];
  t.match(await lieTo(t, () => ({ root: '', onlineKeys: [] }), init), {
    code: 1,
    stderr: /the service has no online key: set TUF_KEY_FILE/,
  });
  t.notOk(existsSync(file('new.json')));
});
