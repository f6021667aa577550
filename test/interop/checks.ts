/** What each program is given, and what it has to make of it. */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runBuf } from '../support/calling/buf.js';
import { run } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Scene } from './scene.js';
import { build, CHECKOUT, MODULE, paste, TOOLS_PATH, tool, verifyingScripts } from './tools.js';

/** The lines of docs/verifying.md, as pasted into a shell, for a witness of the batch's checkpoint and for one that came later. */
export async function checkPastedLines({ dir, laterDir, projectId }: Scene): Promise<Row[]> {
  const [attestLine = '', foreignLines = '', ...more] = await verifyingScripts();
  if (foreignLines === '' || more.length > 0) throw new Error('docs/verifying.md has other blocks');
  const foreign = [/^Verification: OK$/m, /^Verified OK$/m];
  return [
    accepting('docs', 'attest verify', await paste(attestLine.replace('prj_…', projectId), dir), [
      /existed no later than/,
    ]),
    accepting('docs', 'jq, openssl and cosign', await paste(foreignLines, dir), foreign),
    accepting('docs', 'the same, a later witness', await paste(foreignLines, laterDir), foreign),
  ];
}

/** The authority's stamp, for the library that Sigstore's own authority and verifiers read stamps with. */
export async function checkTimestamps({ dir, laterDir }: Scene): Promise<Row[]> {
  const read = (at: string, data = 'checkpoint-body.txt') =>
    run(tool('read-timestamp'), ['evidence.tsr', data, 'chain.pem'], { cwd: at });
  await writeFile(
    join(dir, 'other-body.txt'),
    `${await readFile(join(dir, 'checkpoint-body.txt'), 'utf8')} `,
  );
  return [
    accepting('timestamp-authority', 'the embedded authority’s stamp', await read(dir), [
      /^policy 2\.999\.3161\.1,/,
    ]),
    accepting('timestamp-authority', 'a later witness’s stamp', await read(laterDir), [
      /^policy 2\.999\.3161\.1,/,
    ]),
    refusing('timestamp-authority', 'the stamp, over another checkpoint', await read(dir, 'other-body.txt')),
  ];
}

/** The public log, for Tessera's client and fsck. */
export async function checkPublicLog({ dir, service, bundle }: Scene): Promise<Row[]> {
  const [entry] = bundle.sigstore_bundle.verificationMaterial.tlogEntries;
  await writeFile(join(dir, 'leaf.json'), Buffer.from(entry?.canonicalizedBody ?? '', 'base64'));
  const roots = JSON.parse(await readFile(join(dir, 'trust_roots.json'), 'utf8'));
  const logs: { environment: string; verifier_key: string }[] = roots.transparency_logs;
  const keyOf = (of: string) => logs.find(({ environment }) => environment === of)?.verifier_key ?? '';
  const read = (key: string, leaf: string) => {
    const args = [`${service.verifyUrl}/log/live/`, key, entry?.logIndex ?? '', leaf];
    return run(tool('check-log'), args, { cwd: dir });
  };
  return [
    accepting('tessera', 'the public log', await read(keyOf('live'), 'leaf.json'), [/leaf \d+ is included/]),
    refusing('tessera', 'the public log, another key', await read(keyOf('test'), 'leaf.json')),
    refusing('tessera', 'the public log, another leaf', await read(keyOf('live'), 'report.json')),
  ];
}

/** The template for Go and the client of docs/clients, generated, compiled and run beside genproto. */
export async function checkClient({ dir, service, apiKey }: Scene): Promise<Row[]> {
  const client = join(CHECKOUT, 'docs/clients/go');
  await copyFile(join(client, 'buf.gen.yaml'), join(MODULE, 'buf.gen.yaml'));
  const descriptor = await fetch(`${service.baseUrl}/descriptor.binpb`);
  await writeFile(join(MODULE, 'descriptor.binpb'), Buffer.from(await descriptor.arrayBuffer()));
  await runBuf(['generate'], { cwd: MODULE, path: TOOLS_PATH });
  const generated = await readdir(join(MODULE, 'gen/go'));
  await mkdir(join(MODULE, 'client'));
  await copyFile(join(client, 'main.go'), join(MODULE, 'client/main.go'));
  await build(['client']);
  const env = { ATTEST_TARGET: new URL(service.baseUrl).host, ATTEST_API_KEY: apiKey };
  const submitted = await run(tool('client'), ['other.json'], { cwd: dir, env });
  const verified = await paste(
    'attest verify other.json --bundle other.json.bundle --trust-roots trust_roots.json',
    dir,
  );
  const only = { code: generated.join() === 'attestation' ? 0 : 1, output: generated.join() };
  return [
    accepting('protoc-gen-go', 'generates our files only', only, []),
    accepting('grpc-go', 'a client beside genproto', submitted, [/^sub_/m]),
    accepting('attest', 'the bundle that the Go client saved', verified, [/existed no later than/]),
  ];
}
