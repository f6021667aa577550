/** `attest verify --bundles` of folders that somebody else has written. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { encodeNote, parseNote } from '../../../src/proof/log/note.js';
import { makePublicFolder } from '../../client/files/folders.js';
import { otherGood } from '../../proof/verifying.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { attestFiles, bundlesOf } from './attested-files.js';

const PATHS = ['one', 'two'];

t.test('what is no bundle is named with its reason, and the others are verified', async (t) => {
  const { args, at, write } = await attestFiles(t, PATHS);
  write('proofs/text.json', 'not JSON');
  write('proofs/empty.json', '');
  write('proofs/deep.json', '['.repeat(2_000_000));
  write('proofs/nested.json', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`);
  write('proofs/huge.json', '');
  truncateSync(at('proofs/huge.json'), 100 * 1024 * 1024);
  write('proofs/twice.json', '{"media_type":1,"media_type":2}');
  write('proofs/latin1.json', '');
  writeFileSync(at('proofs/latin1.json'), Buffer.from('{"a":"\xe9"}', 'latin1'));
  write('proofs/null.json', 'null');
  write('proofs/other\u202e.json', '{}');
  execFileSync('mkfifo', [at('proofs/pipe.json')]);
  symlinkSync('nothing', at('proofs/broken.json'));
  symlinkSync('/dev/zero', at('proofs/device.json'));
  const { code, stdout, stderr } = await runProcess(args);
  t.match({ code, stderr }, { code: 1, stderr: '' }, 'some are bundles of another form');
  const reasons: [name: string, reason: RegExp][] = [
    ['broken', /not checked {2}broken\.json: the bundle cannot be read: ENOENT/],
    ['deep', /not checked {2}deep\.json: .*not JSON/],
    ['device', /not checked {2}device\.json: the bundle is not a file/],
    ['empty', /not checked {2}empty\.json: .*is empty/],
    ['huge', /not checked {2}huge\.json: the bundle is too large for a bundle: over 4 MiB/],
    ['latin1', /not checked {2}latin1\.json: .*not text in UTF-8/],
    ['nested', /nested\.json: /],
    ['null', /null\.json: /],
    ['other', /other\ufffd\.json: /],
    ['pipe', /not checked {2}pipe\.json: the bundle is not a file/],
    ['text', /not checked {2}text\.json: .*not JSON/],
    ['twice', /twice\.json: .*has a member twice/],
  ];
  for (const [name, reason] of reasons) t.match(stdout, reason, name);
  t.match(stdout, /^Files: 2 ok, 0 changed, 0 missing, 0 extra,/m);
});

t.test('folders of links, and very deep ones, end', async (t) => {
  const { args, at, write, bundles } = await attestFiles(t, PATHS);
  symlinkSync('.', at('proofs/loop'));
  symlinkSync('..', at('proofs/up.json'));
  t.match(await runHere(args), { code: 2, stdout: /^not checked {2}up\.json: the bundle is not a file\n/ });
  rmSync(at('proofs/up.json'));
  let deep = 'proofs';
  for (let i = 0; i < 300; i++) deep += '/d';
  mkdirSync(at(deep), { recursive: true });
  write(`${deep}/one.json`, bundles[0]);
  t.match(await runHere(args), { code: 0, stdout: /^Files: 2 ok, .*; 3 bundles/ });
});

t.test('what must not be read could not be checked', async (t) => {
  const { args, at } = await attestFiles(t, PATHS, makePublicFolder(t));
  t.match(await runHere(args), { code: 0 });
  chmodSync(at('proofs/one.bundle.json'), 0);
  mkdirSync(at('proofs/closed'));
  chmodSync(at('proofs/closed'), 0);
  // Root reads all: another user does not.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    const { code, stdout } = await runHere(args);
    t.equal(code, 2);
    t.match(stdout, /^not checked {2}closed: the folder cannot be read: EACCES/);
    t.match(stdout, /not checked {2}one \(one\.bundle\.json\): the bundle cannot be read: EACCES/);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});

t.test('no bundle gains by another that has the same checkpoint or evidence', async (t) => {
  const { args, write, at } = await attestFiles(t, PATHS);
  const [good, second] = await bundlesOf(['one', 'two']);
  type Change = (bundle: NonNullable<typeof good>) => unknown;
  const flip = (text: string) => {
    const bytes = Buffer.from(text, 'base64');
    bytes[bytes.length >> 1]! ^= 1;
    return bytes.toString('base64');
  };
  const entryOf = (bundle: NonNullable<typeof good>) =>
    bundle.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
  const cases: [what: string, change: Change, reason: RegExp][] = [
    ['evidence of a time stamp', (b) => (b.witnesses[1]!.evidence = flip(b.witnesses[1]!.evidence)), /tsa/],
    ['evidence of another witness', (b) => (b.witnesses[1]!.evidence = b.witnesses[2]!.evidence), /tsa/],
    ['another name of the same evidence', (b) => (b.witnesses[1]!.name = 'w1'), /./],
    ['detail of the same evidence', (b) => (b.witnesses[1]!.detail.serial = '1'), /detail is not what/],
    ['a cosignature', (b) => (b.witnesses[2]!.evidence = flip(b.witnesses[2]!.evidence)), /w1/],
    ['a leaf', (b) => (entryOf(b).canonicalizedBody = entryOf(second!).canonicalizedBody), /leaf/],
    [
      'a statement',
      (b) => {
        const { payload } = second!.sigstore_bundle.dsseEnvelope;
        Object.assign(b.sigstore_bundle.dsseEnvelope, { payload });
      },
      /./,
    ],
    [
      'a whole envelope',
      (b) => {
        b.sigstore_bundle.dsseEnvelope = second!.sigstore_bundle.dsseEnvelope;
      },
      /./,
    ],
    [
      'the signature',
      (b) => {
        const { signatures } = b.sigstore_bundle.dsseEnvelope;
        Object.assign(signatures[0]!, { sig: flip(signatures[0]!.sig) });
      },
      /signature/,
    ],
    [
      'a proof of inclusion',
      (b) => {
        b.checkpoints[1]!.inclusion_proof = second!.checkpoints[1]!.inclusion_proof;
      },
      /not proven to be in the log/,
    ],
    [
      'the signature of a checkpoint',
      (b) => {
        const { text, signatures } = parseNote(b.checkpoints[1]!.note);
        const [log, ...others] = signatures;
        const signature = Buffer.from(flip(Buffer.from(log!.signature).toString('base64')), 'base64');
        b.checkpoints[1]!.note = encodeNote({ text, signatures: [{ ...log!, signature }, ...others] });
      },
      /not signed by its log/,
    ],
    [
      'the artifact of the plain part',
      (b) => {
        b.submission.artifact_sha256 = second!.submission.artifact_sha256!;
      },
      /artifact_sha256 is not that of the signed statement/,
    ],
  ];
  for (const [what, change, reason] of cases) {
    const forged = structuredClone(good!);
    change(forged);
    // The good ones come first, so that all that can be remembered is.
    write('proofs/0.json', good);
    write('proofs/1.json', second);
    write('proofs/2.json', forged);
    const { code, stdout } = await runHere([...args, '--json']);
    const { files, failed } = JSON.parse(stdout);
    t.equal(code, 1, what);
    t.match([files.ok, failed.length, failed[0]?.bundle, failed[0]?.reason], [2, 1, '2.json', reason], what);
    rmSync(at('proofs/2.json'));
  }
  t.match(await runHere(args), { code: 0 });
});

t.test('a member proof that names no file proves none', async (t) => {
  const { args, write, bundles } = await attestFiles(t, PATHS);
  const [good] = bundles;
  const proofs: unknown[] = [
    null,
    0,
    '',
    [],
    {},
    { entry: null },
    { entry: { sha256: 1 } },
    { entry: { sha256: 'x' } },
  ];
  for (const proof of proofs) {
    write('proofs/one.bundle.json', { ...good, set_proof: proof });
    const { code, stdout } = await runHere(args);
    t.equal(code, 1, JSON.stringify(proof));
    t.match(
      stdout,
      /^FAILED {7}one \(one\.bundle\.json\): .*\nFiles: 1 ok, .* 0 extra, 1 failed/,
      JSON.stringify(proof),
    );
  }
});

t.test('a bundle of another service, or of the other environment, is not verified', async (t) => {
  const { args, write } = await attestFiles(t, PATHS);
  write('proofs/other.json', otherGood);
  t.match(await runHere(args), {
    code: 1,
    stdout: /^FAILED {7}other\.json: the signing key is not/,
  });
});

t.test('files of the folder that cannot be hashed are an error', async (t) => {
  const { args, art } = await attestFiles(t, PATHS);
  symlinkSync('one', join(art, 'link'));
  t.match(await runHere(args), { code: 2, stdout: '', stderr: /link is a symbolic link/ });
});
