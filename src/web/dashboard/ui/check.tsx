import { Checkbox, CheckboxGroup, Label } from 'react-aria-components';

type Props = {
  label: string;
  options: readonly string[];
  value: string[];
  onChange: (value: string[]) => void;
};

/** Chooses several of several. */
export function Checks({ label, options, value, onChange }: Props) {
  return (
    <CheckboxGroup className="group" value={value} onChange={onChange}>
      <Label>{label}</Label>
      <div className="checks">
        {options.map((option) => (
          <Checkbox key={option} value={option} className="check">
            <span className="box" aria-hidden="true" />
            {option}
          </Checkbox>
        ))}
      </div>
    </CheckboxGroup>
  );
}
