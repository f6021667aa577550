/** Submissions of a test, by REST, and what came of them. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { App } from '../../support/app.js';
import type { TestKey } from '../../support/calling/test-keys.js';
import { creation, invalidCreation, METADATA } from './samples.js';

/** What a creation was answered with. */
export type Made = { id: string; artifactSha256: string; leafSha256: string; logIndex: number; salt: string };

/** Submits an artifact that no other is equal to; throws unless it is created. */
export async function submit(app: App, { key }: TestKey, metadata = METADATA): Promise<Made> {
  const artifactSha256 = randomBytes(32).toString('hex');
  const body = creation(artifactSha256, metadata);
  const { status, json } = await app.rest('/v1/attestations', { apiKey: key, body });
  if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
  const { id, leaf_sha256, log_index, metadata_salt } = json;
  return {
    id: String(id),
    artifactSha256,
    leafSha256: String(leaf_sha256),
    logIndex: Number(log_index),
    salt: String(metadata_salt),
  };
}

/** Submits metadata that fails its schema, leniently. @returns the answer */
export async function submitInvalid(app: App, { key }: TestKey): Promise<JsonObject> {
  const body = { ...invalidCreation('ab'.repeat(32)), validation: 'lenient' };
  const { status, json } = await app.rest('/v1/attestations', { apiKey: key, body });
  if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
  return json;
}

/** A witnessed one, with others before it, beside it and after it in the log. */
export async function submitWitnessed(app: App, owner: TestKey): Promise<Made> {
  for (let i = 0; i < 3; i++) await submit(app, owner);
  await app.drain();
  const [, made] = await Promise.all([submit(app, owner), submit(app, owner), submit(app, owner)]);
  await app.drain();
  await submit(app, owner);
  await app.drain();
  return made;
}
