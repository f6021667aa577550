import {
  FieldError,
  Input,
  Label,
  Text,
  TextArea,
  TextField,
  type TextFieldProps,
} from 'react-aria-components';

type Props = Omit<TextFieldProps, 'className' | 'children'> & {
  label: string;
  hint?: string;
  placeholder?: string;
  /** More than one line. */
  rows?: number;
};

/** A text field with its label. */
export function Field({ label, hint, placeholder, rows, ...props }: Props) {
  return (
    <TextField {...props} className="field">
      <Label>{label}</Label>
      {rows === undefined ? <Input placeholder={placeholder} /> : <TextArea rows={rows} spellCheck={false} />}
      {hint === undefined ? null : (
        <Text slot="description" className="hint">
          {hint}
        </Text>
      )}
      <FieldError />
    </TextField>
  );
}
