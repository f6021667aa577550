import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction, AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks, CANARY } from '../../support/judging/recorder.js';
import { INVALID, invalidCreation, METADATA } from '../rpc/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const admin = adminOf(app);
const owner = await newKey(app);
const other = await newKey(app);
const { createAttestation, updateAttestation, deleteAttestation } = AttestationService.method;
const { listAuditEntries } = AuditService.method;

t.test(
  'the audit log names actor, submission and request of corrections and redactions, no metadata',
  async (t) => {
    for (const { name, call } of surfaces) {
      const created = await call(createAttestation, invalidCreation('ab'.repeat(32), INVALID), owner.key);
      const id = String(created.response.id);
      const corrected = await call(updateAttestation, { id, metadata: METADATA }, owner.key);
      const redacted = await call(deleteAttestation, { id }, owner.key);
      await call(deleteAttestation, { id }, owner.key);
      const by = {
        projectId: owner.projectId,
        resourceId: id,
        actor: { kind: 'AUDIT_ACTOR_KIND_API_KEY', id: owner.id },
      };
      const entries = [
        {
          ...by,
          action: 'AUDIT_ACTION_ATTESTATION_REDACTED',
          requestId: redacted.requestId,
          detail: { schema: 'purl' },
        },
        {
          ...by,
          action: 'AUDIT_ACTION_ATTESTATION_CORRECTED',
          requestId: corrected.requestId,
          detail: { schema: 'purl', attested_schema: 'purl' },
        },
      ];
      for (const reader of admin.surfaces) {
        const { response } = await reader.call(listAuditEntries, { resourceId: id }, admin.token);
        const data = response.data as JsonObject[];
        t.same(
          data.map(({ id: _, at: __, ...entry }) => entry),
          entries,
          `by ${name}, read by ${reader.name}`,
        );
        t.ok(data.every((entry) => /^aud_[0-9A-Z]{26}$/.test(String(entry.id)) && entry.at));
        t.notMatch(JSON.stringify(response), new RegExp(CANARY));
      }
    }
  },
);

t.test('entries of a project are not among those of another', async (t) => {
  const { response } = await surfaces[0]!.call(
    createAttestation,
    invalidCreation('cd'.repeat(32)),
    other.key,
  );
  await surfaces[0]!.call(deleteAttestation, { id: String(response.id) }, other.key);
  const list = async (filters: object) =>
    ((await admin.ask(listAuditEntries, filters)).data ?? []) as JsonObject[];
  const redacted = { action: AuditAction.ATTESTATION_REDACTED };
  t.match(await list({ projectId: other.projectId }), [{ resourceId: response.id }]);
  t.equal((await list({ projectId: other.projectId })).length, 1);
  t.equal((await list({ projectId: owner.projectId, ...redacted })).length, surfaces.length);
  t.equal((await list(redacted)).length, surfaces.length + 1);
});

t.test('a rejected change is in no audit log', async (t) => {
  const { response } = await surfaces[0]!.call(
    createAttestation,
    invalidCreation('ef'.repeat(32)),
    owner.key,
  );
  const id = String(response.id);
  for (const { call } of surfaces) {
    t.equal(
      (await call(updateAttestation, { id, metadata: INVALID }, owner.key)).code,
      'submission.invalid_metadata',
    );
    t.equal(
      (await call(updateAttestation, { id, metadata: METADATA }, other.key)).code,
      'submission.not_found',
    );
    t.equal((await call(deleteAttestation, { id }, other.key)).code, 'submission.not_found');
  }
  t.same((await admin.ask(listAuditEntries, { resourceId: id })).data ?? [], []);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
