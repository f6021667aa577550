import {
  MetadataState,
  type Submission,
  SubmissionStatus,
  SubmissionStatusSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Status, type Tone } from '../ui/status.js';

const TONES: Partial<Record<SubmissionStatus, Tone>> = {
  [SubmissionStatus.QUEUED]: 'plain',
  [SubmissionStatus.WITNESSED]: 'good',
  [SubmissionStatus.PARTIAL]: 'wait',
  [SubmissionStatus.FAILED]: 'bad',
};

/** The status of a submission. */
export function SubmissionState({ submission: { status } }: { submission: Submission }) {
  return <Status tone={TONES[status] ?? 'plain'}>{enumName(SubmissionStatusSchema, status)}</Status>;
}

/** Whether its metadata can be corrected: it failed its schema. */
export function isCorrectable({ metadataState }: Submission): boolean {
  return metadataState === MetadataState.INVALID;
}
