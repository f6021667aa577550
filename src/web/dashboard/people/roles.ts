import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';

/** The roles of a project, by proto number as text. */
export const ROLES: readonly (readonly [key: string, name: string])[] = [
  [String(Role.VIEWER), 'Viewer: reads'],
  [String(Role.MEMBER), 'Member: webhooks, exports, corrections as well'],
  [String(Role.ADMIN), 'Admin: says who has access as well'],
];
