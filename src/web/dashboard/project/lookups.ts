import { PublicLookup } from '../../../../gen/attestation/admin/v1/projects_pb.js';

/** The settings of public look-up, by proto number as text, in words. */
export const LOOKUPS: readonly (readonly [key: string, name: string])[] = [
  [String(PublicLookup.DEFAULT), 'As the service is set'],
  [String(PublicLookup.ON), 'On: those who have a file find its proofs'],
  [String(PublicLookup.OFF), 'Off: only the project finds them'],
];
