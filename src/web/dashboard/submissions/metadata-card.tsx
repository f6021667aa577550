import { useState } from 'preact/hooks';
import {
  AttestationService,
  MetadataState,
  MetadataStateSchema,
  type Submission,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { safe, safeJson } from '../ui/safe.js';
import { Status, type Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';
import { Correct } from './correct.js';
import { Redact } from './redact.js';
import { isCorrectable } from './submission-state.js';

const TONES: Partial<Record<MetadataState, Tone>> = {
  [MetadataState.VALID]: 'good',
  [MetadataState.INVALID]: 'bad',
};

/** The metadata, what is wrong with it, and what can be done about it. */
export function MetadataCard({ submission }: { submission: Submission }) {
  const [open, setOpen] = useState<'correct' | 'redact'>();
  const { metadata, metadataState, metadataErrors, redactedAt } = submission;
  const isErased = metadataState === MetadataState.REDACTED;
  const close = () => setOpen(undefined);
  return (
    <section class="card" aria-labelledby="metadata">
      <div class="head">
        <h2 id="metadata">Metadata</h2>
        <Status tone={TONES[metadataState] ?? 'plain'}>{enumName(MetadataStateSchema, metadataState)}</Status>
      </div>
      {isErased ? (
        <p>
          Erased <Time at={redactedAt} />. The proof of the file stays valid.
        </p>
      ) : (
        <pre>{safeJson(metadata)}</pre>
      )}
      {metadataErrors.length === 0 ? null : <Problems submission={submission} />}
      {isErased ? null : (
        <div class="actions">
          {isCorrectable(submission) ? (
            <Button calls={AttestationService.method.updateAttestation} onClick={() => setOpen('correct')}>
              Correct
            </Button>
          ) : null}
          <Button
            isDanger
            calls={AttestationService.method.deleteAttestation}
            onClick={() => setOpen('redact')}
          >
            Erase metadata
          </Button>
        </div>
      )}
      {open === 'correct' ? <Correct submission={submission} onClose={close} /> : null}
      {open === 'redact' ? <Redact submission={submission} onClose={close} /> : null}
    </section>
  );
}

function Problems({ submission: { metadataErrors } }: { submission: Submission }) {
  return (
    <ul class="notice">
      {metadataErrors.map(({ path, message }) => (
        <li key={`${path} ${message}`}>
          <code>{safe(path) || '/'}</code> {safe(message)}
        </li>
      ))}
    </ul>
  );
}
