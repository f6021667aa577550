import { table, whole } from '../table.js';
import type { ClientMeasurement, ClientRow } from './client.js';

const COLUMNS = ['', 'CPU s', 'seconds', 'peak MiB', 'requests', 'aim'];

/** A row for each command, then how the set compares with sha256sum, and which requests each command made. */
export function clientLines({ rows, compared }: ClientMeasurement): string {
  const cells = rows.map((row) => [
    row.name,
    row.cpuSeconds.toFixed(2),
    row.seconds.toFixed(2),
    whole(row.peakMib),
    row.requests === undefined ? '' : whole(countOf(row)),
    row.aim ?? '',
  ]);
  const speeds = compared.map(
    ({ name, clock, cpu }) =>
      `of the speed of ${name} a set has ${clock.toFixed(2)} by the clock, ${cpu.toFixed(2)} by processor time`,
  );
  const requests = rows.flatMap(({ name, requests }) =>
    requests === undefined ? [] : `${name}: ${Object.entries(requests).map(callText).join(', ')}`,
  );
  return [`\ncommands of attest`, table([COLUMNS, ...cells]), ...speeds, ...requests].join('\n');
}

function countOf({ requests = {} }: ClientRow): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}

/** `AttestationService/GetAttestation` by its method alone. */
function callText([rpc, count]: [string, number]): string {
  return `${count} ${rpc.split('/').at(-1)}`;
}
