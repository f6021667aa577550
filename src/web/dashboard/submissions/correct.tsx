import type { JsonObject } from '@bufbuild/protobuf';
import { useState } from 'preact/hooks';
import { AttestationService, type Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Button } from '../ui/button.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';

/** Puts metadata that passes its schema in the place of what does not. */
export function Correct({ submission, onClose }: { submission: Submission; onClose: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(submission.metadata, undefined, 2));
  const correct = useChange(AttestationService.method.updateAttestation);
  const metadata = parse(text);
  const run = () => {
    if (metadata !== undefined) correct.mutate({ id: submission.id, metadata }, { onSuccess: onClose });
  };
  return (
    <Dialog title="Correct the metadata" onClose={onClose}>
      <p>
        The new metadata must pass its schema. What was attested stays in the log, and beside the correction.
      </p>
      <Field
        label="Metadata (JSON)"
        rows={12}
        value={text}
        onChange={setText}
        aria-invalid={metadata === undefined}
      />
      {metadata === undefined ? <p class="notice">This is not a JSON object.</p> : null}
      {correct.error === null ? null : <ErrorState error={correct.error} />}
      <div class="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button isPrimary disabled={metadata === undefined || correct.isPending} onClick={run}>
          Correct it
        </Button>
      </div>
    </Dialog>
  );
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}
