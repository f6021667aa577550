import { Field } from '../ui/field.js';

const FIELDS = [
  ['submissionsPerSecond', 'Submissions a second', '60'],
  ['submissionsPerHour', 'Submissions an hour', '10000'],
  ['submissionsPerDay', 'Submissions a day', '100000'],
  ['readsPerSecond', 'Reads a second', '600'],
] as const;

/** Limits as they are typed in; the service's defaults where left out. */
export type Limits = { [K in (typeof FIELDS)[number][0]]?: string };

/** The limits as the request has them. */
export function readLimits(limits: Limits): Record<string, bigint> {
  return Object.fromEntries(
    Object.entries(limits)
      .filter(([, text]) => /^\d+$/.test(text))
      .map(([name, text]) => [name, BigInt(text)]),
  );
}

/** Fields for the limits of a key. */
export function LimitFields({ limits, onChange }: { limits: Limits; onChange: (limits: Limits) => void }) {
  return (
    <div class="checks">
      {FIELDS.map(([name, label, fallback]) => (
        <Field
          key={name}
          label={label}
          inputmode="numeric"
          placeholder={fallback}
          value={limits[name] ?? ''}
          onChange={(text) => onChange({ ...limits, [name]: text.replace(/\D/g, '').slice(0, 10) })}
        />
      ))}
    </div>
  );
}
