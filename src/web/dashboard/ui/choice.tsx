import { Button, Label, ListBox, ListBoxItem, Popover, Select, SelectValue } from 'react-aria-components';

type Props<K extends string> = {
  label: string;
  isLabelHidden?: boolean;
  options: readonly (readonly [key: K, name: string])[];
  value: K;
  onChange: (value: K) => void;
};

/** Chooses one of several. */
export function Choice<K extends string>({ label, isLabelHidden, options, value, onChange }: Props<K>) {
  return (
    <Select
      className="choice"
      aria-label={isLabelHidden ? label : undefined}
      value={value}
      onChange={(key) => onChange(key as K)}
    >
      {isLabelHidden ? null : <Label>{label}</Label>}
      <Button className="button">
        <SelectValue />
        <span aria-hidden="true" className="chevron" />
      </Button>
      <Popover className="popover">
        <ListBox className="options">
          {options.map(([key, name]) => (
            <ListBoxItem key={key} id={key} textValue={name}>
              {name}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </Select>
  );
}
