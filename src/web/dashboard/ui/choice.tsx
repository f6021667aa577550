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
    <label class="choice">
      {isLabelHidden ? null : label}
      <select
        class="button"
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value as K)}
      >
        {options.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
