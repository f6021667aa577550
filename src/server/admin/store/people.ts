import type { Sql } from '../../database/connect.js';

/** A person as he is named. */
export type PersonRow = {
  /** `per_` and a ULID. */
  id: string;
  name: string;
  /** Empty if the provider names none. */
  email: string;
};

/** Records that somebody has signed in, as the provider names him now. @returns his row, whose id stays the same */
export async function recordPerson(
  tx: Sql,
  person: PersonRow & { issuer: string; subject: string },
): Promise<PersonRow> {
  const [row] = await tx<PersonRow[]>`
    INSERT INTO person (id, issuer, subject, name, email)
    VALUES (${person.id}, ${person.issuer}, ${person.subject}, ${person.name}, ${person.email})
    ON CONFLICT (issuer, subject) DO UPDATE
      SET name = excluded.name, email = excluded.email, signed_in_at = clock_timestamp()
    RETURNING id, name, email`;
  if (row === undefined) throw new Error('the person was not stored');
  return row;
}
