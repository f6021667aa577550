/** Sessions of the dashboard: what a browser sends, without a browser. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type JsonObject,
  type MessageInitShape,
  toJsonString,
} from '@bufbuild/protobuf';
import { request } from 'undici';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { environmentName } from '../../../src/protocol/environment.js';
import type { App } from '../app.js';
import { adminOf } from './admin.js';
import type { TestKey } from './test-keys.js';

/** The answer to a call. */
export type SessionOutcome = {
  status: number;
  /** The dotted error code; `ok` without an error. */
  code: string;
  message: string;
  headers: Record<string, string | string[] | undefined>;
  response: JsonObject;
};

type SessionHeaders = Record<string, string | undefined>;

/** A browser that is signed in, or not yet. */
export type Browser = {
  /** The `Cookie` header; empty before signing in. */
  cookie: string;
  call: <I extends DescMessage>(
    method: DescMethodUnary<I>,
    input: MessageInitShape<I>,
    headers?: SessionHeaders,
  ) => Promise<SessionOutcome>;
  /** Signs in, and takes the cookie. */
  signIn: (
    input: MessageInitShape<typeof SessionService.method.signIn.input>,
    headers?: SessionHeaders,
  ) => Promise<SessionOutcome>;
};

/** A browser without a session, which sends `headers` with every call. */
export function newBrowser(app: App, headers: SessionHeaders = {}, baseUrl = app.baseUrl): Browser {
  const browser: Browser = {
    cookie: '',
    async call(method, input, more = {}) {
      const all = {
        'content-type': 'application/json',
        'connect-protocol-version': '1',
        origin: baseUrl,
        'sec-fetch-site': 'same-origin',
        cookie: browser.cookie === '' ? undefined : browser.cookie,
        ...headers,
        ...more,
      };
      const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
      const answer = await request(`${baseUrl}/${method.parent.typeName}/${method.name}`, {
        method: 'POST',
        headers: Object.fromEntries(sent),
        body: toJsonString(method.input, create(method.input, input)),
      });
      const text = await answer.body.text();
      app.recorder.answered(text, answer.statusCode >= 400);
      return outcomeOf(answer.statusCode, answer.headers, text);
    },
    async signIn(input, more) {
      const outcome = await browser.call(SessionService.method.signIn, input, more);
      const [cookie = ''] = String(outcome.headers['set-cookie'] ?? '').split(';');
      if (outcome.code !== 'ok') return outcome;
      browser.cookie = cookie;
      app.recorder.secrets.add(cookie.slice(cookie.indexOf('=') + 1));
      return outcome;
    },
  };
  return browser;
}

/** A browser that is signed in to the project of a key by a link, and acts for its environment. */
export async function signedIn(
  app: App,
  { projectId, environment }: Pick<TestKey, 'projectId' | 'environment'>,
): Promise<Browser> {
  const browser = newBrowser(app, { 'attest-environment': environmentName(environment) });
  const { code } = await browser.signIn({
    credential: { case: 'link', value: await newLink(app, projectId) },
  });
  if (code !== 'ok') throw new Error(`signing in failed: ${code}`);
  return browser;
}

/** The secret of a new sign-in link. */
export async function newLink(app: App, projectId: string): Promise<string> {
  const { url } = await adminOf(app).ask(SessionService.method.createSignInLink, { projectId });
  const secret = new URL(String(url)).hash.slice(1);
  app.recorder.secrets.add(secret);
  return secret;
}

type ConnectErrorJson = { message?: string; details?: { type: string; value: string }[] };

function outcomeOf(status: number, headers: SessionOutcome['headers'], text: string): SessionOutcome {
  const json = text.startsWith('{') ? JSON.parse(text) : {};
  if (status === 200) return { status, code: 'ok', message: '', headers, response: json };
  const { message = '', details = [] } = json as ConnectErrorJson;
  const detail = details.find(({ type }) => type === ErrorDetailSchema.typeName);
  const { code = 'none' } =
    detail === undefined ? {} : fromBinary(ErrorDetailSchema, Buffer.from(detail.value, 'base64'));
  return { status, code, message, headers, response: {} };
}
