/** A Security Token Service for tests: AssumeRole, with the external id that a role's trust policy requires. */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { AccessKeys } from './keys.js';
import { listen } from './listen.js';
import { S3Error, xmlElements } from './s3-error.js';
import { verifySignature } from './sigv4.js';

/**
 * A role's trust policy: the keys that may assume it, and with which external id, as `StringLike` compares it; any if
 * undefined.
 */
export type RoleTrust = { principals: readonly string[]; externalId: string | undefined };

/** A call of AssumeRole. */
export type AssumeRoleCall = {
  accessKeyId: string;
  roleArn: string;
  sessionName: string;
  externalId: string | undefined;
  outcome: string;
};

export type StsOptions = {
  /** Sessions are added here. */
  keys: AccessKeys;
  roles: ReadonlyMap<string, RoleTrust>;
  /** How long sessions last in place of what is asked for. */
  sessionSeconds?: number;
};

export type StsServer = { url: string; calls: AssumeRoleCall[]; close: () => Promise<void> };

const MAX_BODY_BYTES = 16 * 1024;
const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/';

/** Starts it on a free port of 127.0.0.1. */
export async function startStsServer(options: StsOptions): Promise<StsServer> {
  const calls: AssumeRoleCall[] = [];
  const listener = await listen((request, response) => {
    answerOf(options, calls, request).then(
      ({ status, body }) => response.writeHead(status, { 'content-type': 'text/xml' }).end(body),
      () => request.socket.destroy(),
    );
  });
  return { url: listener.url, calls, close: listener.close };
}

async function answerOf(context: StsOptions, calls: AssumeRoleCall[], request: IncomingMessage) {
  try {
    const { method = '', url = '', headers } = request;
    const body = await readBody(request);
    const accessKeyId = verify(context, { method, url, headers }, body);
    const input = new URLSearchParams(body);
    const result = assumeRole(context, calls, { accessKeyId, input });
    return { status: 200, body: `<AssumeRoleResponse xmlns="${NAMESPACE}">${result}</AssumeRoleResponse>` };
  } catch (error) {
    if (!(error instanceof S3Error)) throw error;
    const members = xmlElements({ Type: 'Sender', Code: error.code, Message: error.message });
    const body = `<ErrorResponse xmlns="${NAMESPACE}"><Error>${members}</Error></ErrorResponse>`;
    return { status: error.status, body };
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new S3Error('RequestEntityTooLarge', 'The request is too large.');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

function verify(
  { keys }: StsOptions,
  request: { method: string; url: string; headers: IncomingHttpHeaders },
  body: string,
): string {
  const payloadHash = createHash('sha256').update(body).digest('hex');
  return verifySignature({ service: 'sts', region: undefined, keys, now: Date.now }, request, payloadHash);
}

/** `*` stands for any characters. */
function isLike(text: string | undefined, pattern: string): boolean {
  const [start = '', ...rest] = pattern.split('*');
  if (text === undefined || !text.startsWith(start)) return false;
  return rest.length === 0 ? text === start : text.endsWith(rest.at(-1) ?? '');
}

function assumeRole(
  { keys, roles, sessionSeconds }: StsOptions,
  calls: AssumeRoleCall[],
  { accessKeyId, input }: { accessKeyId: string; input: URLSearchParams },
): string {
  if (input.get('Action') !== 'AssumeRole') throw new S3Error('InvalidAction', 'The action is not valid.');
  const roleArn = input.get('RoleArn') ?? '';
  const sessionName = input.get('RoleSessionName') ?? '';
  const externalId = input.get('ExternalId') ?? undefined;
  const seconds = Number(input.get('DurationSeconds') ?? 3600);
  if (!/^[\w+=,.@-]{2,64}$/.test(sessionName) || !(seconds >= 900 && seconds <= 43_200))
    throw new S3Error('ValidationError', 'The session name or the duration is not valid.');
  const trust = roles.get(roleArn);
  const isTrusted =
    trust?.principals.includes(accessKeyId) === true &&
    (trust.externalId === undefined || isLike(externalId, trust.externalId));
  const call = { accessKeyId, roleArn, sessionName, externalId };
  calls.push({ ...call, outcome: isTrusted ? 'assumed' : 'refused' });
  if (!isTrusted)
    throw new S3Error('AccessDenied', `User: ${accessKeyId} is not authorized to perform: sts:AssumeRole`);
  const session = `ASIA${randomBytes(8).toString('hex').toUpperCase()}`;
  const secretAccessKey = randomBytes(30).toString('base64');
  const sessionToken = randomBytes(60).toString('base64');
  const expiresAt = Date.now() + (sessionSeconds ?? seconds) * 1000;
  keys.set(session, { secretAccessKey, sessionToken, expiresAt });
  const members = xmlElements({
    AccessKeyId: session,
    SecretAccessKey: secretAccessKey,
    SessionToken: sessionToken,
    Expiration: new Date(expiresAt).toISOString(),
  });
  return `<AssumeRoleResult><Credentials>${members}</Credentials></AssumeRoleResult>`;
}
