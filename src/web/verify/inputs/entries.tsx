import type { TargetedEvent } from 'preact';
import { useId } from 'preact/hooks';

/** A button that opens the browser's choice of a file. The same file can be chosen again after it has changed. */
export function FilePicker({ label, onFile }: { label: string; onFile: (file: File) => void }) {
  const pick = ({ currentTarget }: TargetedEvent<HTMLInputElement>) => {
    const [file] = currentTarget.files ?? [];
    if (file !== undefined) onFile(file);
    currentTarget.value = '';
  };
  return (
    <label class="picker">
      <input type="file" onChange={pick} />
      <span>{label}</span>
    </label>
  );
}

/** One line of text that is given by its button or by Enter. */
export function TextEntry({
  label,
  action,
  onText,
}: {
  label: string;
  action: string;
  onText: (text: string) => void;
}) {
  const id = useId();
  const give = (event: TargetedEvent<HTMLFormElement, SubmitEvent>) => {
    event.preventDefault();
    onText(String(new FormData(event.currentTarget).get('text') ?? ''));
  };
  return (
    <form class="entry" onSubmit={give}>
      <label for={id}>{label}</label>
      <div>
        <input
          id={id}
          name="text"
          type="text"
          required
          maxLength={200}
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">{action}</button>
      </div>
    </form>
  );
}
