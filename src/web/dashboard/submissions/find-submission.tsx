import { useState } from 'preact/hooks';
import { useLocation } from 'wouter';
import { Button } from '../ui/button.js';
import { Field } from '../ui/field.js';
import { safe } from '../ui/safe.js';
import { DropZone, FileButton } from './drop-zone.js';
import { hashFile } from './hash-file.js';

type Props = { sha256: string; onSha256: (sha256: string) => void };

const HEX = /^(?:sha256:)?([0-9a-f]{64})$/i;
const ID = /^sub_[0-9A-Z]{26}$/;

/** Finds by id, by digest, or by a file, which is hashed here and goes nowhere. */
export function FindSubmission({ sha256, onSha256 }: Props) {
  const [text, setText] = useState('');
  const [note, setNote] = useState('');
  const [, navigate] = useLocation();
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    const [, hex] = HEX.exec(wanted) ?? [];
    setNote('');
    if (ID.test(wanted)) navigate(`/submissions/${wanted}`);
    else if (hex !== undefined) onSha256(hex.toLowerCase());
    else setNote('An id is sub_ and 26 characters; a SHA-256 is 64 hex digits.');
  };
  const take = async (file: File) => {
    const name = safe(file.name);
    setNote(`Hashing ${name}…`);
    try {
      const hex = await hashFile(file, (done) => setNote(`Hashing ${name}: ${done} %`));
      setNote(`${name} has the SHA-256 ${hex}`);
      onSha256(hex);
    } catch {
      setNote(`${name} cannot be read.`);
    }
  };
  return (
    <DropZone label="Drop a file to find its submissions" onFile={take}>
      <form class="row grow end" onSubmit={find}>
        <div class="grow">
          <Field
            label="Find by id or SHA-256"
            value={text}
            onChange={setText}
            placeholder="sub_… or 64 hex digits"
          />
        </div>
        <Button type="submit">Find</Button>
        <FileButton label="Choose a file" onFile={take} />
        {sha256 === '' ? null : (
          <Button isQuiet onClick={() => onSha256('')}>
            Show all
          </Button>
        )}
      </form>
      <p class="hint" role="status">
        {note || 'Or drop a file here: it is hashed in your browser and not uploaded.'}
      </p>
    </DropZone>
  );
}
