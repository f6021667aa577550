/** A service to submit to, and files. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, type ConnectError } from '@connectrpc/connect';
import type { Test } from 'tap';
import {
  AttestationService,
  type BatchItem,
  type ListAttestationsRequest,
  SubmissionStatus,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { serveRpc, serviceError } from '../../support/servers/rpc-server.js';

export const KEYS = {
  live: createApiKey(Environment.LIVE, randomBytes),
  test: createApiKey(Environment.TEST, randomBytes),
};
/** An ID that no submission has. */
export const GONE = `sub_${'0'.repeat(26)}`;
export const BUNDLE = new TextEncoder().encode('{"media_type":"…"}');

/** A service that numbers submissions and has them witnessed at the second look; `refuse` may refuse one. */
export async function serve(
  t: Test,
  refuse: (request: BatchItem) => ConnectError | undefined = () => undefined,
) {
  const created: BatchItem[] = [];
  const lists: ListAttestationsRequest[] = [];
  const looks = new Map<string, number>();
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => ({
        results: items.map((item) => {
          const error = refuse(item);
          if (error !== undefined) return resultOf(error);
          created.push(item);
          const { artifact, metadata } = item;
          const id = `sub_${artifact?.sha256.slice(0, 4)}`;
          return { submission: { id, status: SubmissionStatus.QUEUED, artifact, metadata } };
        }),
      }),
      getAttestation: ({ id }) => {
        const look = (looks.get(id) ?? 0) + 1;
        looks.set(id, look);
        return { id, status: look < 2 ? SubmissionStatus.QUEUED : SubmissionStatus.WITNESSED };
      },
      listAttestations: (request) => {
        lists.push(request);
        const sha256 = request.artifactSha256;
        const { length } = created.filter(({ artifact }) => artifact?.sha256 === sha256);
        // The first page is cut short, as one is that has looked at very many submissions.
        if (request.cursor === '') return { data: [], nextCursor: 'cur_next' };
        const data = Array.from({ length }, (_, i) => ({
          id: `sub_${sha256.slice(0, 4)}_${length - i}`,
          status: SubmissionStatus.WITNESSED,
          submittedAt: timestampFromMs(1_760_000_000_123),
          artifact: { sha256 },
          metadata: { schema: 'purl' },
        }));
        return { data, nextCursor: '' };
      },
      downloadBundle: ({ id, format }) => {
        if (id === GONE) throw serviceError('submission.not_found', Code.NotFound);
        return { data: format === 'bundle.json' ? BUNDLE : new TextEncoder().encode(format) };
      },
    });
  });
  return { created, lists, requests, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test }, baseUrl };
}

/** An error as the result of an item; throws it unless it is one of a submission or of a rate limit of an hour. */
function resultOf(error: ConnectError) {
  const [detail] = error.details as unknown as [
    { value: { code: string; details?: JsonObject; requestId?: string } },
  ];
  const { code } = detail.value;
  if (!/^(submission|rate_limit)\./.test(code)) throw error;
  const result = { error: { ...detail.value, message: error.rawMessage } };
  return code.startsWith('rate_limit.') ? { ...result, retryAfter: 3_600 } : result;
}

export const digest = (text: string) => createHash('sha256').update(text).digest('hex');

/** Three files and their submissions' ids, in order; and beside them what else the folder should hold. */
export function files(t: Test, more: Record<string, string | object> = {}) {
  const contents = ['first', 'second', 'third'];
  const dir = t.testdir({ 'a b.txt': contents[0]!, 'é.txt': contents[1]!, 'c.txt': contents[2]!, ...more });
  const paths = ['a b.txt', 'é.txt', 'c.txt'].map((name) => join(dir, name));
  return {
    dir,
    paths,
    digests: contents.map(digest),
    ids: contents.map((text) => `sub_${digest(text).slice(0, 4)}`),
  };
}
