// @generated from the option `spelling` of enum values

import type { Environment } from '../attestation/v1/environment_pb.js';
import type { WitnessKind } from '../attestation/v1/bundle_pb.js';
import type { SubmissionStatus, MetadataState, ValidationMode, StatementForm, ItemOutcome } from '../attestation/v1/attestations_pb.js';
import type { BatchStatus, WitnessStatus } from '../attestation/v1/batches_pb.js';
import type { DestinationKind, ExportStart, ExportCompression, ExportStatus, ExportDeliveryStatus } from '../attestation/v1/exports_pb.js';
import type { EventType, WebhookStatus, DeliveryStatus } from '../attestation/v1/webhooks_pb.js';

/** The texts by which REST spells the values of an enum; never for other types. */
export type Spelling<E> =
  E extends Environment ? 'live' | 'test' :
  E extends WitnessKind ? 'transparency_log' | 'log_witness' | 'rfc3161' | 'opentimestamps' | 'evm' :
  E extends SubmissionStatus ? 'queued' | 'witnessed' | 'partial' | 'failed' :
  E extends MetadataState ? 'valid' | 'invalid' | 'redacted' :
  E extends ValidationMode ? 'strict' | 'lenient' :
  E extends StatementForm ? 'private' | 'public' :
  E extends ItemOutcome ? 'created' | 'replayed' | 'failed' :
  E extends BatchStatus ? 'sealed' | 'witnessed' | 'partial' | 'failed' :
  E extends WitnessStatus ? 'pending' | 'landed' | 'failed' :
  E extends DestinationKind ? 's3' | 'gcs' | 'azure_blob' | 'git_repo' :
  E extends ExportStart ? 'now' | 'beginning' :
  E extends ExportCompression ? 'none' | 'gzip' :
  E extends ExportStatus ? 'active' | 'failing' | 'stopped' :
  E extends ExportDeliveryStatus ? 'pending' | 'delivered' :
  E extends EventType ? 'attestation.witnessed' | 'attestation.partial' | 'attestation.failed' | 'webhook.test' | 'export.failing' :
  E extends WebhookStatus ? 'active' | 'disabled' | 'deleted' :
  E extends DeliveryStatus ? 'pending' | 'delivered' | 'failed' :
  never;
