import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';

type Props<K extends string> = {
  label: string;
  options: readonly (readonly [key: K, name: string])[];
  value: K;
  onChange: (value: K) => void;
};

/** Chooses one of a few, all of which show. */
export function Segments<K extends string>({ label, options, value, onChange }: Props<K>) {
  return (
    <ToggleButtonGroup
      className="segments"
      aria-label={label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      onSelectionChange={([key]) => onChange(key as K)}
    >
      {options.map(([key, name]) => (
        <ToggleButton key={key} id={key}>
          {name}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}
