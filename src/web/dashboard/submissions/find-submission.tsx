import { useState } from 'preact/hooks';
import { useLocation } from 'wouter';
import { Button } from '../ui/button.js';
import { Field } from '../ui/field.js';
import { safe } from '../ui/safe.js';
import { DropZone, FileButton } from './drop-zone.js';
import { hashFile } from './hash-file.js';

/** Which submissions are listed: of an artifact, of a build, or all. */
export type Wanted = { readonly sha256?: string; readonly build?: string };

type Props = { wanted: Wanted; onWanted: (wanted: Wanted) => void };

const HEX = /^(?:sha256:)?([0-9a-f]{64})$/i;
const ID = /^sub_[0-9A-Z]{26}$/;
/** What is meant as an id or a digest, and is none. */
const MISTYPED = /^(?:sub_|sha256:|[0-9a-f]{60,}$)/i;

/** Finds by id, by digest, by build, or by a file, which is hashed here and goes nowhere. */
export function FindSubmission({ wanted, onWanted }: Props) {
  const [text, setText] = useState('');
  const [note, setNote] = useState('');
  const [, navigate] = useLocation();
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const typed = text.trim();
    const [, hex] = HEX.exec(typed) ?? [];
    setNote('');
    if (ID.test(typed)) navigate(`/submissions/${typed}`);
    else if (hex !== undefined) onWanted({ sha256: hex.toLowerCase() });
    else if (typed === '' || MISTYPED.test(typed))
      setNote('An id is sub_ and 26 characters; a SHA-256 is 64 hex digits.');
    else onWanted({ build: typed });
  };
  const take = async (file: File) => {
    const name = safe(file.name);
    setNote(`Hashing ${name}…`);
    try {
      const hex = await hashFile(file, (done) => setNote(`Hashing ${name}: ${done} %`));
      setNote(`${name} has the SHA-256 ${hex}`);
      onWanted({ sha256: hex });
    } catch {
      setNote(`${name} cannot be read.`);
    }
  };
  return (
    <DropZone label="Drop a file to find its submissions" onFile={take}>
      <form class="row grow end" onSubmit={find}>
        <div class="grow">
          <Field
            label="Find by id, SHA-256 or build"
            value={text}
            onChange={setText}
            placeholder="sub_…, 64 hex digits, or the name of a build"
          />
        </div>
        <Button type="submit">Find</Button>
        <FileButton label="Choose a file" onFile={take} />
        {Object.keys(wanted).length === 0 ? null : (
          <Button isQuiet onClick={() => onWanted({})}>
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
