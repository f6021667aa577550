/** The secret of an export: a destination that has it, and the assertion that nothing else shows it. */
import type { Test } from 'tap';
import { DestinationKind } from '../../../../gen/attestation/v1/exports_pb.js';
import { BUCKET, OWNER } from '../../../support/exports/s3/fixture.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { dumpTables, findTraces } from '../../../support/judging/traces.js';
import { type ExportScene, SECRET } from './exporting.js';

/** A destination in the store of a scene, as every protocol takes it. */
export function destinationOf({ store }: ExportScene) {
  return { kind: DestinationKind.S3, bucket: BUCKET, prefix: 'copies', endpoint: store.url, ...OWNER };
}

/** Asserts that no log line, table or answer, of which there are more than `least`, has the secret of the store. */
export async function assertSecretKept(t: Test, scene: ExportScene, least: number): Promise<void> {
  assertNoLeaks(t, scene.app.recorder);
  t.ok(scene.answers.length > least);
  t.notOk(scene.answers.some((text) => text.includes(SECRET) || text.includes('secret')));
  const lines = await dumpTables(scene.app.pool);
  t.ok(lines.length > 20);
  t.same(findTraces(lines, [Buffer.from(SECRET)]), []);
}
