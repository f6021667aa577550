import { getOption } from '@bufbuild/protobuf';
import { rules } from '../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';

/** Every scope that a method of the API requires and a key may lack. */
export const SCOPES: readonly string[] = [AttestationService, BatchService, WebhookService, ExportService]
  .flatMap(({ methods }) => methods.map((method) => getOption(method, rules).scope))
  .filter((scope, index, all) => all.indexOf(scope) === index)
  .sort();
