import t from 'tap';
import { isMethod, refuse } from '../../../../support/breaking/fault-proxy.js';
import { control, textObject } from '../../../../support/exports/export-objects.js';
import { makeGcsStore } from '../../../../support/exports/gcs/open-bucket.js';
import { assertLine, testFaults } from '../../../../support/exports/store-faults.js';

testFaults(t, makeGcsStore);

t.test('an upload that Google has lost begins anew, three times at most', async (t) => {
  const { proxy, open, look, secrets } = await makeGcsStore(t);
  const destination = await open();
  const name = 'copies/exp/live/2026/01/02/btc.jsonl';
  for (const status of [404, 410]) void proxy.breakNext(isMethod('PUT'), refuse(status, {}, 'Not Found'));
  t.same(await destination.write(textObject(name, 'one'), control()), { outcome: 'written' });
  t.match(await look(name), { revision: '1' });
  for (let i = 0; i < 3; i++) void proxy.breakNext(isMethod('PUT'), refuse(404, {}, 'Not Found'));
  const error = await destination.write(textObject(name, 'two', 2), control()).catch((thrown) => thrown);
  assertLine(t, error, { says: /^Google lost the upload on its way \(404: Not Found\)$/, secrets });
});
