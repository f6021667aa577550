import { useId } from 'preact/hooks';

type Props<K extends string> = {
  label: string;
  options: readonly (readonly [key: K, name: string])[];
  value: K;
  onChange: (value: K) => void;
};

/** Chooses one of a few, all of which show. */
export function Segments<K extends string>({ label, options, value, onChange }: Props<K>) {
  const name = useId();
  return (
    <fieldset class="segments" aria-label={label}>
      {options.map(([key, text]) => (
        <label key={key}>
          <input type="radio" name={name} checked={key === value} onChange={() => onChange(key)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
