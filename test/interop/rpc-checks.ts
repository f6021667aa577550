/** The API by gRPC, gRPC-Web and Connect, for programs of Go that know only its address. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runBuf } from '../support/calling/buf.js';
import { run, type Said } from './command.js';
import { accepting, type Row } from './rows.js';
import type { Scene } from './scene.js';
import { tool } from './tools.js';

const CREATE = 'attestation.v1.AttestationService/CreateAttestation';
const GET = 'attestation.v1.AttestationService/GetAttestation';
/** A submission as any of them prints it. */
const SUBMISSION = [/"id": ?"sub_/, /"leafSha256"/];
/** What each prints of an error. */
const REFUSED: Readonly<Record<string, readonly RegExp[]>> = {
  grpcurl: [/Code: Unauthenticated/, /auth\.invalid_key/],
  buf: [/"code": ?"unauthenticated"/, /ErrorDetail/],
};

/** Reflection, health, a call with an answer and calls with errors, by grpcurl and by buf in each protocol. */
export async function checkRpcs({ dir, service, apiKey }: Scene): Promise<Row[]> {
  const host = new URL(service.baseUrl).host;
  const grpcurl = (...args: string[]) => run(tool('grpcurl'), ['-plaintext', '-max-time', '10', ...args]);
  const rows = [
    accepting('grpcurl', 'reflection: list', await grpcurl(host, 'list'), [
      /^attestation\.v1\.AttestationService$/m,
      /^grpc\.health\.v1\.Health$/m,
    ]),
    accepting('grpcurl', 'reflection: describe', await grpcurl(host, 'describe', CREATE.replace('/', '.')), [
      /rpc CreateAttestation/,
    ]),
    accepting('grpcurl', 'health', await grpcurl(host, 'grpc.health.v1.Health/Check'), [/SERVING/]),
  ];
  const ask = (key: string, method: string, body: string) =>
    grpcurl('-H', `authorization: Bearer ${key}`, '-d', body, host, method);
  rows.push(...(await checkCalls('grpcurl', 'gRPC', apiKey, ask)));
  const schema = join(dir, 'descriptor.binpb');
  const descriptor = await fetch(`${service.baseUrl}/descriptor.binpb`);
  await writeFile(schema, Buffer.from(await descriptor.arrayBuffer()));
  for (const protocol of ['grpc', 'grpcweb', 'connect']) {
    const isGrpc = protocol === 'grpc' ? ['--http2-prior-knowledge'] : [];
    const askBuf = (key: string, method: string, body: string) =>
      curl([
        ...isGrpc,
        ...['--schema', schema, '--protocol', protocol],
        ...['--header', `authorization: Bearer ${key}`, '--data', body, `${service.baseUrl}/${method}`],
      ]);
    rows.push(...(await checkCalls('buf', protocol, apiKey, askBuf)));
  }
  return rows;
}

async function curl(args: readonly string[]): Promise<Said> {
  try {
    return { code: 0, output: await runBuf(['curl', ...args]) };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { code: 1, output: `${stdout}${stderr}` };
  }
}

type Ask = (key: string, method: string, body: string) => Promise<Said>;

async function checkCalls(name: string, protocol: string, apiKey: string, ask: Ask): Promise<Row[]> {
  const sha256 = randomBytes(32).toString('hex');
  const body = JSON.stringify({
    artifact: { sha256 },
    metadata: { schema: 'purl', purl: 'pkg:npm/a@1.0.0' },
  });
  const made = await ask(apiKey, CREATE, body);
  const id = /"id": ?"(sub_[^"]+)"/.exec(made.output)?.[1] ?? '';
  const wrong = await ask('sk_wrong', GET, JSON.stringify({ id }));
  return [
    accepting(name, `${protocol}: a submission`, made, SUBMISSION),
    accepting(name, `${protocol}: reading it`, await ask(apiKey, GET, JSON.stringify({ id })), SUBMISSION),
    // It ends with the code of the error, which says nothing about the words.
    accepting(
      name,
      `${protocol}: a wrong key`,
      { ...wrong, code: wrong.code === 0 ? 1 : 0 },
      REFUSED[name] ?? [],
    ),
  ];
}
