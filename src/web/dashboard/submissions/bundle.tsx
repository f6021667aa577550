import { createClient } from '@connectrpc/connect';
import { useTransport } from '@connectrpc/connect-query';
import { useMutation } from '@tanstack/react-query';
import { AttestationService, type Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { ErrorState } from '../ui/states.js';

const SIGSTORE = 'bundle.sigstore.json';
const FORMATS = [
  ['bundle.json', 'Proof bundle', 'everything that a verifier needs'],
  [SIGSTORE, 'Sigstore bundle', 'for cosign'],
  ['bundle.tlog-proof', 'C2SP tlog-proof', 'for tools of transparency logs'],
  ['bundle.cose', 'COSE receipt', 'RFC 9942'],
  ['bundle.ots', 'OpenTimestamps', 'once such a witness has landed'],
] as const;

/** The proof, in each of its formats; of an erased statement there is no Sigstore bundle. */
export function Bundle({ submission: { id, statementErasedAt } }: { submission: Submission }) {
  const { verifyUrl } = useScope().session;
  const client = createClient(AttestationService, useTransport());
  const download = useMutation({
    mutationFn: async (format: string) => {
      const { data, contentType } = await client.downloadBundle({ id, format });
      save(new Blob([data.slice()], { type: contentType }), `${id}.${format}`);
    },
  });
  return (
    <section class="card" aria-labelledby="bundle">
      <h2 id="bundle">Proof</h2>
      <p class="hint">
        Anyone can check it offline with <code>attest verify</code>, or at{' '}
        <a href={`${verifyUrl}/`}>the verify page</a>.
      </p>
      <div class="stack">
        {FORMATS.filter(([format]) => statementErasedAt === undefined || format !== SIGSTORE).map(
          ([format, name, hint]) => (
            <div key={format} class="row">
              <Button isQuiet onClick={() => download.mutate(format)}>
                {name}
              </Button>
              <span class="hint">{hint}</span>
            </div>
          ),
        )}
      </div>
      {download.error === null ? null : <ErrorState error={download.error} />}
    </section>
  );
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
