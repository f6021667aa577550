import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import {
  AttestationService,
  type DeleteAttestationRequest,
  MetadataState,
  type UpdateAttestationRequest,
} from '../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { createApiKey } from '../../src/server/keys/api-key.js';
import { runHere, runProcess } from '../support/calling/run-cli.js';
import { serveRpc, serviceError } from '../support/servers/rpc-server.js';

const ID = 'sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T';
/** It does not exist. */
const GONE = 'sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1G';
const PURL = { schema: 'purl', purl: 'pkg:npm/acme@1.0.0' };

/** A service that corrects and redacts whatever it is told, but for GONE. */
async function serve(t: Test) {
  const corrected: UpdateAttestationRequest[] = [];
  const redacted: DeleteAttestationRequest[] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      updateAttestation: (request) => {
        const { id, metadata } = request;
        if (id === GONE) throw serviceError('submission.not_found', Code.NotFound);
        corrected.push(request);
        return { id, metadata, metadataState: MetadataState.VALID };
      },
      deleteAttestation: (request) => {
        redacted.push(request);
        return { id: request.id, metadata: { schema: 'purl' }, metadataState: MetadataState.REDACTED };
      },
    });
  });
  const env = { ATTEST_URL: baseUrl, ATTEST_API_KEY: createApiKey(Environment.LIVE, randomBytes) };
  return { corrected, redacted, env };
}

t.test('correct sends all of the metadata, with the schema in it', async (t) => {
  const { corrected, env } = await serve(t);
  const dir = await mkdtemp(join(tmpdir(), 'attest-cli-'));
  t.teardown(() => rm(dir, { recursive: true }));
  const file = join(dir, 'metadata.json');
  await writeFile(file, JSON.stringify(PURL));
  const { purl } = PURL;
  for (const args of [
    ['--schema', 'purl', '--metadata', JSON.stringify({ purl })],
    ['--metadata', JSON.stringify(PURL)],
    ['--schema', 'purl', '--metadata', `@${file}`],
  ]) {
    const ended = await runHere(['correct', ID, ...args], { env });
    t.same(ended, { code: 0, stdout: `${ID}  corrected\n`, stderr: '' });
    t.match(corrected.pop(), { id: ID, metadata: PURL });
  }
  const { stdout } = await runHere(['correct', ID, '--metadata', JSON.stringify(PURL), '--json'], { env });
  t.match(JSON.parse(stdout), { id: ID, metadata: PURL, metadata_state: 'valid' });
});

t.test('correct reports usage errors and rejections with the reason', async (t) => {
  const { corrected, env } = await serve(t);
  for (const [args, said] of [
    [[ID], /--metadata/],
    [[ID, '--metadata', '{"purl":"x"}'], /has no schema/],
    [[ID, '--metadata', '[]'], /not a JSON object/],
    [[ID, '--metadata', JSON.stringify(PURL), '--schema', 'other'], /differs from the schema/],
    [['--metadata', JSON.stringify(PURL)], /missing required argument/],
  ] as const) {
    const ended = await runHere(['correct', ...args], { env });
    t.equal(ended.code, 2, args.join(' '));
    t.match(ended.stderr, said);
  }
  t.same(corrected, []);
  const refused = await runHere(['correct', GONE, '--metadata', JSON.stringify(PURL)], { env });
  t.equal(refused.code, 1);
  t.match(refused.stderr, /submission\.not_found/);
});

t.test('redact prompts at a terminal, and erases only after confirmation', async (t) => {
  const { redacted, env } = await serve(t);
  for (const typed of ['\n', 'n\n', 'no\n', 'maybe\n', 'nyes\n', '']) {
    const ended = await runHere(['redact', ID], { env, typed });
    t.equal(ended.code, 1, typed);
    t.match(ended.stderr, /Erase the metadata of sub_\w+ for good\? \[y\/N\] error: not confirmed/);
  }
  t.same(redacted, []);
  for (const typed of ['y\n', 'Yes\n', ' y \nmore']) {
    const ended = await runHere(['redact', ID], { env, typed });
    t.match(ended, { code: 0, stdout: `${ID}  redacted\n` }, typed);
  }
  t.equal(redacted.length, 3);
});

t.test('redact requires --yes without a terminal', async (t) => {
  const { redacted, env } = await serve(t);
  const refused = await runProcess(['redact', ID], env);
  t.match(refused, { code: 2, stdout: '', stderr: /--yes/ });
  t.same(redacted, []);
  const done = await runProcess(['redact', ID, '--yes', '--json'], env);
  t.equal(done.code, 0);
  t.match(JSON.parse(done.stdout), { id: ID, metadata: { schema: 'purl' }, metadata_state: 'redacted' });
  t.match(redacted, [{ id: ID }]);
});

t.test('correct and redact have help texts', async (t) => {
  for (const [name, said] of [
    ['correct', /--metadata <json>/],
    ['redact', /-y, --yes/],
  ] as const) {
    const { code, stdout } = await runHere([name, '--help']);
    t.equal(code, 0);
    t.match(stdout, said);
    t.match(stdout, /Examples:/);
  }
});
