/** C2SP witnesses: litewitness cosigns our log, torchwood judges the result, and a log in Go feeds `attest witness`. */
import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { COSIGNATURE_V1_KEY, encodeVerifierKey, noteKey } from '../../src/proof/log/note.js';
import { findFreePort } from '../support/servers/free-port.js';
import { attest, startUp } from '../support/servers/up.js';
import { startWitnessProcess, writeWitnessKeys } from '../support/servers/witness-process.js';
import { until } from '../support/until.js';
import { run, runOrThrow } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import { fetchText, type Scene } from './scene.js';
import { tool } from './tools.js';

const NAME = 'litewitness.interop.example/w1';

type Stop = () => Promise<unknown>;

/** Our log under litewitness, and a foreign log under our witness. */
export async function checkWitnesses({ dir }: Scene): Promise<Row[]> {
  const stops: Stop[] = [];
  try {
    return [
      ...(await checkLitewitness(join(dir, 'litewitness'), stops)),
      ...(await checkOwnWitness(dir, stops)),
    ];
  } finally {
    for (const stop of stops) await stop();
  }
}

async function checkLitewitness(dir: string, stops: Stop[]): Promise<Row[]> {
  await mkdir(dir);
  const key = await makeSshKey(dir);
  const port = await findFreePort();
  const witness = {
    name: 'lite',
    kind: 'log_witness',
    url: `http://127.0.0.1:${port}`,
    verifier_key: key.verifierKey,
  };
  const service = await startUp(join(dir, 'data'), {
    WITNESSES: JSON.stringify([witness]),
    LOG_LEVEL: 'fatal',
  });
  stops.unshift(() => service.stop());
  await startLitewitness(dir, key.fingerprint, port, stops);
  const { transparency_logs: logs } = JSON.parse(await fetchText(`${service.verifyUrl}/trust_roots.json`));
  for (const { origin, verifier_key } of logs) {
    await runOrThrow(tool('add-witness-log'), [join(dir, 'litewitness.db'), origin, verifier_key]);
  }
  const path = join(dir, 'report.json');
  await writeFile(path, '{}');
  const data = ['--data-dir', join(dir, 'data')];
  for (const _ of [1, 2]) attest('submit', path, '--wait', '--quiet', ...data);
  const id = attest('submit', path, '--wait', '--quiet', ...data).trim();
  const bundle = join(dir, 'bundle.json');
  attest('bundle', id, '--wait', '-o', bundle, ...data);
  const verified = await run(tool('attest'), ['verify', path, '--bundle', bundle, ...data], { cwd: dir });
  const policy = join(dir, 'policy');
  await writeFile(policy, await fetchText(`${service.verifyUrl}/policy`));
  const note = await fetchText(`${service.verifyUrl}/log/live/checkpoint`);
  const uncosigned = `${note.split('\n').slice(0, -2).join('\n')}\n`;
  const judge = async (name: string, text: string) => {
    await writeFile(join(dir, name), text);
    return run('sh', ['-c', `exec "${tool('check-policy')}" policy < ${name}`], { cwd: dir });
  };
  return [
    accepting('litewitness', 'our log, three times', verified, [/according to .*lite/]),
    accepting('torchwood', 'the public checkpoint, by our policy', await judge('note', note), [
      /2 signatures verified/,
    ]),
    refusing('torchwood', 'the same without its cosignature', await judge('uncosigned', uncosigned)),
    refusing(
      'torchwood',
      'the same at another size',
      await judge('changed', note.replace(/\n(\d+)\n/, '\n1$1\n')),
    ),
  ];
}

/** A key that ssh-agent holds, as litewitness wants it. */
async function makeSshKey(dir: string): Promise<{ fingerprint: string; verifierKey: string }> {
  const path = join(dir, 'key');
  await runOrThrow('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  const [, encoded = ''] = (await readFile(`${path}.pub`, 'utf8')).split(' ');
  // RFC 8709, section 4: the 32 bytes come last.
  const publicKey = new Uint8Array(Buffer.from(encoded, 'base64').subarray(-32));
  const [, fingerprint = ''] = (await runOrThrow('ssh-keygen', ['-l', '-f', `${path}.pub`])).split(' ');
  return { fingerprint, verifierKey: encodeVerifierKey(noteKey(NAME, publicKey, COSIGNATURE_V1_KEY)) };
}

async function startLitewitness(dir: string, key: string, port: number, stops: Stop[]): Promise<void> {
  const agent = join(dir, 'agent');
  start('ssh-agent', ['-D', '-a', agent], stops);
  const env = { SSH_AUTH_SOCK: agent };
  await until(
    'the agent holds the key',
    async () => (await run('ssh-add', ['-q', join(dir, 'key')], { env })).code === 0,
  );
  const database = join(dir, 'litewitness.db');
  const listen = `127.0.0.1:${port}`;
  start(
    tool('litewitness'),
    ['-name', NAME, '-key', key, '-ssh-agent', agent, '-db', database, '-listen', listen],
    stops,
  );
  await until('litewitness listens', async () => (await fetch(`http://${listen}/`)).ok);
}

function start(command: string, args: readonly string[], stops: Stop[]): void {
  const child = spawn(command, args, { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('close', resolve));
  stops.unshift(() => {
    child.kill('SIGTERM');
    return ended;
  });
}

/** The log of `test/interop/go/feed-witness`, which verifies what it gets. */
async function checkOwnWitness(dir: string, stops: Stop[]): Promise<Row[]> {
  const folder = join(dir, 'own-witness');
  await mkdir(folder);
  const [signingKey = '', logKey = ''] = (await runOrThrow(tool('feed-witness'), [])).split('\n');
  const { settings, verifierKeys } = await writeWitnessKeys(folder, 'witness.interop.example/w2');
  const teardown = (stop: Stop) => void stops.unshift(stop);
  const witness = await startWitnessProcess({ teardown }, { ...settings, WITNESS_LOGS: logKey });
  const fed = await run(tool('feed-witness'), [signingKey, witness.url, ...verifierKeys]);
  return [
    accepting('torchwood', 'attest witness, fed by a log in Go', fed, [
      /6 checkpoints are cosigned by 2 keys, and no fork/,
    ]),
  ];
}
