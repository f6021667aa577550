import type { ComponentChildren } from 'preact';
import { printable } from '../../../protocol/printable.js';
import { Instant } from '../instant.tsx';
import { urlBelow } from '../place.js';
import { StatusIcon, StatusWord } from '../result/status.tsx';
import { kindText, VERDICT_TEXTS } from '../result/step-texts.js';
import type { Result } from '../result/use-verification.js';
import { originText } from '../trust/trust-panel.tsx';
import { QrCode } from './qr-code.tsx';

/** The proof in words, on one sheet. A proof that is not verified gets no certificate, but the reason. */
export function CertificateSheet({ id, result }: { id: string; result: Result }) {
  const { verdict, summary, statement, existedBy } = result.verification;
  if (verdict !== 'verified' || statement === undefined) {
    return (
      <div class="problem" role="alert">
        <h1>No certificate: {VERDICT_TEXTS[verdict].title.toLowerCase()}</h1>
        <p>{printable(summary)}</p>
      </div>
    );
  }
  return (
    <article class="sheet">
      <Head environment={statement.environment} />
      <p class="statement">
        A file with this SHA-256 was attested
        {existedBy === undefined ? (
          <>. No witness says when.</>
        ) : (
          <>
            {' '}
            and existed no later than{' '}
            <strong>
              <Instant time={existedBy} />
            </strong>
            .
          </>
        )}
      </p>
      <code class="hash digest">{statement.artifactSha256}</code>
      <dl class="facts">
        <Row name="Attested by project">{printable(statement.project)}</Row>
        <Row name="Submission">{statement.submissionId}</Row>
      </dl>
      <Witnesses result={result} />
      <Link id={id} />
      <p class="quiet basis">
        All eight steps of the proof were verified in this browser on <Instant time={new Date()} />, against{' '}
        {originText(result.roots.origin)}. The sheet itself proves nothing: follow its link and check again.
      </p>
    </article>
  );
}

function Head({ environment }: { environment: string }) {
  return (
    <div class="sheet-head">
      <StatusIcon status="passed" size={48} />
      <div>
        <h1>Certificate of attestation</h1>
        {environment === 'test' && <p class="test">Test environment: not a live attestation</p>}
      </div>
    </div>
  );
}

function Witnesses({ result }: { result: Result }) {
  const { witnesses } = result.verification;
  return (
    <section aria-labelledby="vouch-title">
      <h2 id="vouch-title">Who vouches</h2>
      <ul class="vouchers">
        {witnesses.map(({ name, kind, status, time, operator, treeSize }) => (
          <li key={`${name} ${treeSize}`}>
            <StatusIcon status={status} size={18} />
            <span>
              <StatusWord status={status} /> <strong>{printable(name)}</strong>, {kindText(kind)}
              {operator === 'self' && ' run by the operator of the service'}
              {status === 'passed' && time !== undefined && (
                <>
                  : existed by <Instant time={time} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Link({ id }: { id: string }) {
  const { href } = urlBelow(`#id=${id}`);
  return (
    <section class="check" aria-labelledby="check-title">
      <QrCode text={href} label="QR code of the link below" />
      <div>
        <h2 id="check-title">Check it yourself</h2>
        <p>
          Open this link and give the file. The file stays on your computer; the browser verifies the proof.
        </p>
        <p>
          <a href={href}>{href}</a>
        </p>
      </div>
    </section>
  );
}

function Row({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <code>{children}</code>
      </dd>
    </div>
  );
}
