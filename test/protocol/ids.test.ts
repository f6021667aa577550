import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import * as ids from '../../src/protocol/ids.js';

t.test('the forms of IDs are those of the protos', async (t) => {
  const folder = 'proto/attestation/v1/';
  const protos = readdirSync(folder).map((name) => readFileSync(folder + name, 'utf8'));
  for (const [name, { source }] of Object.entries(ids)) {
    const isThere = protos.some((proto) => proto.includes(`pattern = "${source}"`));
    t.ok(isThere, `${name}: ${source}`);
  }
});
