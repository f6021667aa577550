import { AttestationService, type Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Confirm } from '../ui/confirm.js';
import { useChange } from '../use-change.js';
import { isPublic } from './facts.js';

/** Erases the metadata, after a question. */
export function Redact({ submission, onClose }: { submission: Submission; onClose: () => void }) {
  const redact = useChange(AttestationService.method.deleteAttestation);
  return (
    <Confirm
      title="Erase the metadata?"
      action="Erase for good"
      change={redact}
      onClose={onClose}
      onConfirm={() => redact.mutate({ id: submission.id }, { onSuccess: onClose })}
    >
      <p>
        The metadata and the salt that ties it to the log are erased, here and in exports. The proof that the
        file was attested stays. This cannot be undone.
      </p>
      {isPublic(submission) ? (
        <p class="notice">
          The statement is public: the proof bundle still shows the metadata, also to those who fetch it
          later, until an operator erases the statement.
        </p>
      ) : null}
    </Confirm>
  );
}
