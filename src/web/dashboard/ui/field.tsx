import type { InputHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

type Attributes =
  | 'aria-invalid'
  | 'autocomplete'
  | 'autofocus'
  | 'inputmode'
  | 'maxLength'
  | 'placeholder'
  | 'required';

type Props = Pick<InputHTMLAttributes, Attributes> & {
  label: string;
  type?: 'datetime-local' | 'password' | 'text';
  value: string;
  onChange: (value: string) => void;
  /** More than one line. */
  rows?: number;
};

/** A text field with its label. */
export function Field({ label, rows, value, onChange, ...props }: Props) {
  const id = useId();
  const given = { ...props, id, value };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input {...(given as InputHTMLAttributes)} onInput={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <textarea
          {...given}
          rows={rows}
          spellcheck={false}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </div>
  );
}
