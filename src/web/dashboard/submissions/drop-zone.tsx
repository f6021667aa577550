import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

type Props = { label: string; onFile: (file: File) => void; children: ComponentChildren };

/** An area that takes a dropped file, the first of several. */
export function DropZone({ label, onFile, children }: Props) {
  const [isOver, setOver] = useState(false);
  return (
    <fieldset
      class="drop"
      aria-label={label}
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const [file] = event.dataTransfer?.files ?? [];
        if (file !== undefined) onFile(file);
      }}
    >
      {children}
    </fieldset>
  );
}

/** A button that chooses a file. */
export function FileButton({ label, onFile }: Omit<Props, 'children'>) {
  return (
    <label class="button">
      <input
        type="file"
        class="sr"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file !== undefined) onFile(file);
          // The same file may be chosen again.
          currentTarget.value = '';
        }}
      />
      {label}
    </label>
  );
}
