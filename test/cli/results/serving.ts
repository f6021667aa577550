/** A service that keeps what is created, for commands that submit results. */

import type { ConnectError } from '@connectrpc/connect';
import type { Test } from 'tap';
import {
  AttestationService,
  type BatchItem,
  type CreateAttestationRequest,
  SubmissionStatus,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { BUNDLE, KEYS } from '../submit/submitting.js';

type Request = CreateAttestationRequest | BatchItem;

/** Serves until the test ends; submissions are witnessed at once, and lists are empty. `refuse` may refuse one. */
export async function serveResults(t: Test, refuse: () => ConnectError | undefined = () => undefined) {
  const created: Request[] = [];
  const create = (request: Request) => {
    const error = refuse();
    if (error !== undefined) throw error;
    created.push(request);
    const { artifact, metadata } = request;
    return { id: `sub_${created.length}`, status: SubmissionStatus.QUEUED, artifact, metadata };
  };
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: create,
      batchCreateAttestations: ({ items }) => ({
        results: items.map((item) => ({ submission: create(item) })),
      }),
      listAttestations: () => ({ data: [], nextCursor: '' }),
      getAttestation: ({ id }) => ({ id, status: SubmissionStatus.WITNESSED }),
      downloadBundle: () => ({ data: BUNDLE }),
    });
  });
  return { created, requests, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test } };
}
