import type { ApiKey } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Copyable } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';

/** Shows a new key, the only time that it can be seen. */
export function NewSecret({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const { baseUrl } = useScope().session;
  const { secret = '', scopes } = apiKey;
  const canSubmit = scopes.includes('attestations:write');
  return (
    <Dialog title="Your new API key" onClose={onClose} isFirm>
      <p class="notice">Copy it now. It is shown only this once; the service keeps a hash of it.</p>
      <Copyable label="API key" text={secret} />
      <p>{canSubmit ? 'Try it: this submits a digest.' : 'Try it: this shows what the key may do.'}</p>
      <Copyable
        label="curl line"
        text={canSubmit ? submitLine(baseUrl, secret) : readLine(baseUrl, secret)}
      />
      <div class="actions">
        <Button isPrimary onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  );
}

function submitLine(baseUrl: string, secret: string): string {
  const body = `{"artifact": {"sha256": "'$(openssl dgst -sha256 -r FILE | cut -d' ' -f1)'"}, "metadata": {"schema": "purl", "purl": "pkg:generic/FILE"}}`;
  return `curl ${baseUrl}/v1/attestations -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '${body}'`;
}

function readLine(baseUrl: string, secret: string): string {
  return `curl ${baseUrl}/v1/service/me -H 'Authorization: Bearer ${secret}'`;
}
