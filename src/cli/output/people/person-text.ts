import type { Person } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { printable } from '../../../protocol/printable.js';

/** A person by name and e-mail address; a dash if there is none. */
export function personText(person: Person | undefined): string {
  if (person === undefined) return '-';
  const { id, name, email } = person;
  if (email === '' || email === name) return printable(name || id);
  return printable(`${name} <${email}>`);
}
