import type { TargetedEvent } from 'preact';
import type { Expectations } from './expectations.js';

type Props = { value: Expectations; onChange: (value: Expectations) => void };

/** What else the reader expects of the proof. */
export function ExpectationsPanel({ value, onChange }: Props) {
  const set =
    (name: keyof Expectations) =>
    ({ currentTarget }: TargetedEvent<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>) =>
      onChange({ ...value, [name]: currentTarget.value });
  return (
    <section class="panel" aria-labelledby="more-title">
      <h2 id="more-title">What you expect</h2>
      <label class="field">
        Environment
        <select value={value.environment} onChange={set('environment')}>
          <option value="live">live</option>
          <option value="test">test</option>
        </select>
      </label>
      <label class="field">
        Project that must have attested it
        <input
          type="text"
          value={value.project}
          onChange={set('project')}
          placeholder="any project"
          maxLength={60}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <details>
        <summary>Identity, metadata and Bitcoin blocks</summary>
        <label class="field">
          Issuer of the identity that must have submitted it
          <input
            type="text"
            value={value.issuer}
            onChange={set('issuer')}
            placeholder="any issuer, or a stored key"
            maxLength={300}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label class="field">
          Its subject; <code>*</code> stands for any characters
          <input
            type="text"
            value={value.identity}
            onChange={set('identity')}
            placeholder="repo:acme/app:*"
            maxLength={300}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label class="field">
          Metadata, as JSON
          <textarea rows={3} value={value.metadata} onChange={set('metadata')} spellcheck={false} />
        </label>
        <label class="field">
          Its salt, in hex
          <input
            type="text"
            value={value.metadataSalt}
            onChange={set('metadataSalt')}
            maxLength={100}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label class="field">
          Headers of Bitcoin blocks from a node that you trust, <code>height:hex</code>, one a line
          <textarea
            rows={3}
            value={value.bitcoinHeaders}
            onChange={set('bitcoinHeaders')}
            spellcheck={false}
          />
        </label>
      </details>
    </section>
  );
}
