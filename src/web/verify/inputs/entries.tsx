import type { TargetedEvent } from 'preact';
import { useId } from 'preact/hooks';
import { chosenFolder, type FolderSource } from '../folder/list-folder.js';

/** A button that opens the browser's choice of a file. */
export function FilePicker({ label, onFile }: { label: string; onFile: (file: File) => void }) {
  return (
    <label class="picker">
      <input type="file" onChange={(event) => takeChosen(event).map(onFile)} />
      <span>{label}</span>
    </label>
  );
}

type FolderProps = { onFolder: (folder: FolderSource) => void };

/** A button that opens the browser's choice of a folder. */
export function FolderPicker({ label, onFolder }: FolderProps & { label: string }) {
  return (
    <label class="picker">
      <input type="file" {...FOLDERS} onChange={(event) => chosenFolder(takeChosen(event)).map(onFolder)} />
      <span>{label}</span>
    </label>
  );
}

/** An input that takes a folder that is dropped on it, for those who point. */
export function FolderDrop({ onFolder }: FolderProps) {
  const hidden = { tabIndex: -1, 'aria-hidden': true } as const;
  return (
    <input
      type="file"
      class="folder-drop"
      {...FOLDERS}
      {...hidden}
      onChange={(event) => chosenFolder(takeChosen(event)).map(onFolder)}
    />
  );
}

/** An attribute that the types of Preact lack. */
const FOLDERS = { webkitdirectory: true };

/** The files of an input, which is emptied: the same file can be chosen again after it has changed. */
function takeChosen({ currentTarget }: TargetedEvent<HTMLInputElement>): File[] {
  const files = [...(currentTarget.files ?? [])];
  currentTarget.value = '';
  return files;
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
