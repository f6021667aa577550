type Props = {
  label: string;
  options: readonly string[];
  value: string[];
  onChange: (value: string[]) => void;
};

/** Chooses several of several. */
export function Checks({ label, options, value, onChange }: Props) {
  const toggle = (option: string) =>
    onChange(value.includes(option) ? value.filter((one) => one !== option) : [...value, option]);
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      <div class="checks">
        {options.map((option) => (
          <label key={option} class="check">
            <input type="checkbox" checked={value.includes(option)} onChange={() => toggle(option)} />
            {option}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
