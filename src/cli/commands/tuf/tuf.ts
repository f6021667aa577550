import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { type Tuf, TufSchema, TufService } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import type { AdminCall } from '../../../client/admin.js';
import { fromHex } from '../../../proof/bytes/encoding.js';
import { keyIdsOf, tufKeyId } from '../../../server/public/tuf/metadata.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJson,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { confirm } from '../../output/confirm.js';
import { addHelp } from '../../output/help.js';
import { writeOutput } from '../../output/write-output.js';
import { openRootKey, type RootKey, readRootKey, signersOf } from './key-files.js';
import {
  allSigners,
  isRootDue,
  type Publication,
  readSignedRoot,
  replaceKeys,
  type Signing,
  signPublication,
} from './publication.js';
import { changesText, tufText } from './tuf-text.js';

type SignFlags = AdminFlags & { key: string[]; yes?: boolean };
type InitFlags = SignFlags & { threshold?: number; out: string };
type RotateFlags = SignFlags & { newKey?: string[]; threshold?: number; onlineKey?: boolean };

const HELP = `
Sigstore's tools get the trust roots from the TUF repository at {verify_url}/tuf/. The root keys, Ed25519 in PEM, sign what it
holds; they stay on this machine, and belong on none that runs the service. The service signs snapshot and timestamp itself,
with the key of TUF_KEY_FILE.

Publish again when the trust roots change (\`attest tuf status\` shows it), and at least once a year.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest tuf init --key tuf-root.pem --key tuf-spare.pem',
  'attest tuf status',
  'attest tuf publish --key tuf-root.pem',
  'attest tuf rotate --key tuf-root.pem --new-key tuf-root-2.pem --new-key tuf-spare.pem',
  'attest tuf rotate --key tuf-root.pem --online-key',
];

const { getTuf, publishTuf } = TufService.method;

/** `attest tuf`. */
export function addTuf(program: Command, cli: Cli): void {
  const tuf = addHelp(program.command('tuf'), HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(tuf.command(name)), HELP, EXAMPLES);
  const signing = (name: string, keys: string) =>
    command(name).requiredOption('--key <file>', keys, collect).option('--yes', 'sign without asking');
  command('status')
    .description('show versions and expiry of the metadata, and what is to be done')
    .action((flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, await call(getTuf, {}))),
    );
  signing(
    'init',
    'root key, made if there is no such file; give several so that the loss of one is not the end',
  )
    .description('make the repository, and the root.json that verifiers start from')
    .option('--threshold <number>', 'how many root keys must sign', parseThreshold, 1)
    .option('--out <file>', 'where to write the root', 'root.json')
    .action((flags: InitFlags) => withAdminApi(cli, flags, (call) => init(cli, call, flags)));
  signing('publish', 'root key, as many as must sign')
    .description('publish the trust roots as they are now, and renew what expires')
    .action((flags: SignFlags) => withAdminApi(cli, flags, (call) => publish(cli, call, flags)));
  signing('rotate', 'present root key, as many as must sign')
    .description('replace the root keys, or the online key')
    .option(
      '--new-key <file>',
      'root key from now on, private or public, made if there is no such file',
      collect,
    )
    .option(
      '--threshold <number>',
      'how many root keys must sign from now on (default: as before)',
      parseThreshold,
    )
    .option('--online-key', 'let the last key of TUF_KEY_FILE sign snapshot and timestamp')
    .action((flags: RotateFlags) => withAdminApi(cli, flags, (call) => rotate(cli, call, flags)));
}

async function init(
  cli: Cli,
  call: AdminCall,
  { key, threshold = 1, out, ...flags }: InitFlags,
): Promise<void> {
  if (existsSync(out)) throw new UsageError(`${out} exists: name another file with --out`);
  const tuf = await call(getTuf, {});
  const paths = [...new Set(key)];
  if (threshold > paths.length) throw new UsageError(`--threshold ${threshold} needs as many --key`);
  if (tuf.root !== '') {
    await writeFirstRoot(cli, tuf, paths, out);
    return;
  }
  const onlineKey = pickOnlineKey(tuf, 0);
  const keys = await Promise.all(paths.map(openRootKey));
  const rootKeys = keys.map(({ publicKey }) => publicKey);
  const signing = { root: undefined, keys: { rootKeys, threshold, onlineKey }, signers: signersOf(keys) };
  const { root = '' } = await signAndPublish(cli, call, { tuf, signing }, flags);
  await writeOutput(out, root);
  printError(cli, `wrote ${out}; keep ${paths.join(' and ')} offline`);
}

/** For an init whose answer was lost. Throws if the repository has other keys, or a later root. */
async function writeFirstRoot(cli: Cli, tuf: Tuf, paths: readonly string[], out: string): Promise<void> {
  const { version } = readSignedRoot(tuf, paths.map(readRootKey)).signed;
  if (version !== 1) throw new Error(`there is a TUF repository, with version ${version} of root`);
  await writeOutput(out, tuf.root);
  printError(cli, `there is a TUF repository with these keys; wrote its root to ${out}`);
}

async function publish(cli: Cli, call: AdminCall, { key, ...flags }: SignFlags): Promise<void> {
  const tuf = await call(getTuf, {});
  const signing = openKeys(tuf, key);
  const keys = isRootDue(signing.root, cli.now()) ? replaceKeys(signing.root, {}) : undefined;
  await signAndPublish(cli, call, { tuf, signing: { ...signing, keys } }, flags);
}

async function rotate(cli: Cli, call: AdminCall, flags: RotateFlags): Promise<void> {
  const { key, newKey = [], threshold, onlineKey, ...others } = flags;
  if (newKey.length === 0 && threshold === undefined && !onlineKey) {
    throw new UsageError('nothing is to be replaced: give --new-key, --threshold or --online-key');
  }
  const tuf = await call(getTuf, {});
  const { root, keys: present } = openKeys(tuf, key);
  const online = onlineKey ? pickOnlineKey(tuf, -1) : undefined;
  if (online !== undefined && keyIdsOf(root, 'timestamp').includes(tufKeyId(online))) {
    throw new Error(
      'the online key is the last of TUF_KEY_FILE: add another and restart every process first',
    );
  }
  const newKeys = await Promise.all([...new Set(newKey)].map(openRootKey));
  const keys = replaceKeys(root, {
    ...(newKeys.length > 0 && { rootKeys: newKeys.map(({ publicKey }) => publicKey) }),
    ...(threshold !== undefined && { threshold }),
    ...(online !== undefined && { onlineKey: online }),
  });
  if (keys.threshold > keys.rootKeys.length)
    throw new UsageError(`the threshold ${keys.threshold} needs as many root keys`);
  const signing = { root, keys, signers: allSigners(present, newKeys) };
  await signAndPublish(cli, call, { tuf, signing }, others);
}

type OpenKeys = { root: NonNullable<Signing['root']>; keys: RootKey[]; signers: Signing['signers'] };

function openKeys(tuf: Tuf, paths: readonly string[]): OpenKeys {
  const keys = [...new Set(paths)].map(readRootKey);
  return { root: readSignedRoot(tuf, keys), keys, signers: signersOf(keys) };
}

/** Shows what the signatures are to vouch for, and publishes it once the operator has confirmed it. */
async function signAndPublish(
  cli: Cli,
  call: AdminCall,
  { tuf, signing }: { tuf: Tuf; signing: Signing },
  { yes, ...flags }: Omit<SignFlags, 'key'>,
): Promise<Publication> {
  printError(cli, changesText(tuf, signing.keys));
  if (!yes) await confirm(cli, 'Sign and publish this?', '--yes');
  const publication = await signPublication(tuf, signing, cli.now());
  show(cli, flags, await call(publishTuf, publication));
  return publication;
}

function pickOnlineKey({ onlineKeys }: Tuf, at: number): Uint8Array {
  const key = onlineKeys.at(at);
  if (key === undefined)
    throw new Error('the service has no online key: set TUF_KEY_FILE and restart every process first');
  return fromHex(key);
}

function show(cli: Cli, { json }: AdminFlags, tuf: Tuf): void {
  if (json) printJson(cli, TufSchema, tuf);
  else print(cli, tufText(tuf));
}

function collect(file: string, files: string[] = []): string[] {
  return [...files, file];
}

function parseThreshold(text: string): number {
  return parseCount('--threshold', text, 8);
}
