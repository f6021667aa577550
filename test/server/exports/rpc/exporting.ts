/** What tests of ExportService have in common: a service, a store, and all that was answered. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { type App, type AppOptions, startApp } from '../../../support/app.js';
import type { TestKey } from '../../../support/calling/test-keys.js';
import { BUCKET, OWNER, startStore } from '../../../support/exports/s3/fixture.js';
import type { S3Server } from '../../../support/exports/s3/s3-server.js';

/** The secret of the store's owner, which no answer and no log line may contain. */
export const SECRET = OWNER.secretAccessKey;

export type Json = JsonObject & { id: string };

/** An error as REST answers it. */
export type Refusal = { status: number; code: string; message: string; details: JsonObject };

export type ExportScene = {
  app: App;
  store: S3Server;
  /** The text of every answer, on all protocols. */
  answers: string[];
  /** A destination in the store as REST takes it; the members of `more` replace others, or remove them if undefined. */
  destination(more?: Record<string, string | undefined>): JsonObject;
  /** Creates an export to the store by REST; `more` has further members of the request. */
  make(owner: TestKey, more?: JsonObject, headers?: Record<string, string>): Promise<Json>;
  /** A request that fails. */
  refusal(
    owner: TestKey,
    body: JsonObject,
    options?: { path?: string; headers?: Record<string, string> },
  ): Promise<Refusal>;
  /** The ids of the exports that the store was probed for. */
  probed(): string[];
};

/** Starts a service and a store until the test ends. */
export async function setExportScene(t: Test, options: AppOptions = {}): Promise<ExportScene> {
  const app = await startApp(t, options);
  const store = await startStore(t);
  app.recorder.secrets.add(SECRET);
  const answers: string[] = [];
  const { answered } = app.recorder;
  app.recorder.answered = (text, isError) => {
    answers.push(text);
    answered(text, isError);
  };
  const destination: ExportScene['destination'] = (more = {}) => {
    const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
    const members = {
      bucket: BUCKET,
      prefix: 'copies',
      endpoint: store.url,
      access_key_id,
      secret_access_key,
    };
    return JSON.parse(JSON.stringify({ kind: 's3', ...members, ...more })) as JsonObject;
  };
  return {
    app,
    store,
    answers,
    destination,
    make: async ({ key }, more = {}, headers = {}) => {
      const body = { destination: destination(), ...more };
      const { status, json } = await app.rest('/v1/exports', { apiKey: key, body, headers });
      if (status !== 201) throw new Error(JSON.stringify(json));
      return json as Json;
    },
    refusal: async ({ key }, body, { path = '/v1/exports', headers = {} } = {}) => {
      const { status, json } = await app.rest(path, { apiKey: key, body, headers });
      const { code, message, details } = (json.error ?? {}) as Refusal;
      return { status, code, message, details };
    },
    probed: () => {
      const ids = store.requests
        .filter(({ method, key }) => method === 'PUT' && key.endsWith('/probe'))
        .map(({ key }) => key.split('/').at(-2) ?? '');
      return [...new Set(ids)];
    },
  };
}
