/** A service whose results of items a test decides, and submissions to it. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import {
  AttestationService,
  type BatchItem,
  ItemOutcome,
} from '../../../gen/attestation/v1/attestations_pb.js';
import type { SubmitManyItem } from '../../../src/client/client.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { clientOf } from '../clients.js';

/** What the service does with one item of one call. */
type Verdict = 'created' | 'replayed' | { code: string; retryAfter?: number; details?: JsonObject };

/** A service whose items come to what `judge` says; it throws what is the whole call's. */
export async function serve(t: Test, judge: (item: BatchItem, call: number) => Verdict) {
  const calls: BatchItem[][] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => {
        calls.push(items);
        return { results: items.map((item) => resultOf(item, judge(item, calls.length))) };
      },
    });
  });
  return { calls, baseUrl, ...clientOf(baseUrl) };
}

/** The result of one item. */
export function resultOf({ artifact }: BatchItem, verdict: Verdict) {
  if (typeof verdict === 'object') {
    const { code, retryAfter, details } = verdict;
    const error = { code, details, message: `because of ${code}`, requestId: 'req_1' };
    return { outcome: ItemOutcome.FAILED, error, ...(retryAfter !== undefined && { retryAfter }) };
  }
  const outcome = verdict === 'created' ? ItemOutcome.CREATED : ItemOutcome.REPLAYED;
  return { outcome, submission: { id: `sub_${artifact?.sha256}` } };
}

/** Items with artifacts of their own, in order. */
export const items = (
  count: number,
  more: { metadata?: JsonObject; idempotencyKey?: string } = {},
): SubmitManyItem[] =>
  Array.from({ length: count }, (_, i) => ({
    artifact: { sha256: String(i) },
    metadata: { schema: 'purl' },
    ...more,
  }));

type Client = ReturnType<typeof clientOf>['client'];

/** Submits items; returns a line for each result, and asserts that each was announced. */
export async function submit(
  t: Test,
  { attestations }: Client,
  given: Iterable<SubmitManyItem> | AsyncIterable<SubmitManyItem>,
) {
  const results: string[] = [];
  let count = 0;
  const onResults = (more: number) => {
    count += more;
  };
  for await (const { index, submission, isReplayed, error } of attestations.submitMany(given, {
    onResults,
  })) {
    results.push(`${index} ${error?.code ?? submission?.id}${isReplayed ? ' again' : ''}`);
  }
  t.equal(count, results.length, 'every result was announced');
  return results;
}
