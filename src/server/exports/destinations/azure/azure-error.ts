/** Errors of Azure Blob Storage, explained to the owner of a container. */
import { readRetryAfter } from '../../../net/retry-after.js';
import { DestinationError } from '../destination.js';
import { oneLine } from '../failure-text.js';
import type { HttpAnswer } from '../http-client.js';

const MAX_TEXT = 250;

/** The answer to a failed request. */
export class AzureFailure extends Error {
  override readonly name = 'AzureFailure';
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor({ status, headers, body }: HttpAnswer) {
    super(readElement(body, 'AuthenticationErrorDetail') ?? readElement(body, 'Message') ?? '');
    this.status = status;
    // Answers to HEAD have no body.
    this.code = headers['x-ms-error-code'] ?? readElement(body, 'Code') ?? '';
    this.retryAfterMs = readRetryAfter(headers['retry-after'], Date.now());
  }
}

/** A container: its name for the owner, and the function that removes secrets from a text. */
export type AzureSubject = { container: string; redact: (text: string) => string };

/** Whether another writer was faster: the blob is not what was read, or its blocks were discarded by another commit. */
export function isLostRace({ status, code }: AzureFailure): boolean {
  if (status === 412) return !code.startsWith('Lease');
  return ['BlobAlreadyExists', 'PathAlreadyExists', 'InvalidBlockList'].includes(code);
}

/** Makes the line for the owner of a container. */
export function toAzureError(failure: AzureFailure, { container, redact }: AzureSubject): DestinationError {
  const { status, message, retryAfterMs } = failure;
  // Cut after that, or half a secret could be left.
  const code = oneLine(redact(failure.code), 64);
  const detail = [`${status} ${code}`.trim(), oneLine(redact(message), MAX_TEXT)].filter(
    (text) => text !== '',
  );
  return new DestinationError(`${advise(failure, container)} (${detail.join(': ')})`, { retryAfterMs });
}

const NEW_SAS =
  'Azure rejects sas_token: it is altered, outside of its time, or its key was replaced; make a new one';
const ROLE =
  'sas_token must permit to read, create and write blobs of the container (sp=rcw, and srt=o if it has srt)';

/** Advice by the code of Azure's error. */
const ADVICE: Readonly<Record<string, string>> = {
  AuthenticationFailed: NEW_SAS,
  InvalidAuthenticationInfo: NEW_SAS,
  NoAuthenticationInformation: NEW_SAS,
  AuthorizationPermissionMismatch: ROLE,
  AuthorizationServiceMismatch: ROLE,
  AuthorizationResourceTypeMismatch: ROLE,
  InsufficientAccountPermissions: ROLE,
  AuthorizationFailure: "Azure forbids access: check sas_token and the account's firewall",
  AuthorizationSourceIPMismatch: 'sas_token does not permit the address of this service (sip)',
  AuthorizationProtocolMismatch: 'sas_token does not permit this protocol (spr)',
  AccountIsDisabled: 'the storage account is disabled',
  InvalidBlobType: 'a blob of another type has the name; delete it',
  RequestBodyTooLarge: 'Azure rejects objects of this size',
};

function advise({ status, code }: AzureFailure, container: string): string {
  if (status === 429 || status === 503 || code === 'ServerBusy')
    return 'Azure throttles requests, or is not available';
  if (/^Container(?:NotFound|BeingDeleted|Disabled)$/.test(code))
    return `the container ${container} does not exist; create it or correct its name`;
  if (/Immutable|LegalHold/i.test(code))
    return `the container ${container} must allow overwriting: remove its immutability policy, or the legal hold`;
  if (code.startsWith('Lease')) return 'somebody else has leased the blob; release the lease';
  if (/Md5Mismatch|Crc64Mismatch/.test(code)) return 'the data changed on its way';
  if (/Quota|LimitExceeded|InsufficientStorage/i.test(code) || status === 507)
    return 'the storage account is full';
  if (Object.hasOwn(ADVICE, code)) return ADVICE[code] as string;
  if (status === 403 || status === 401) return ROLE;
  if (status >= 300 && status < 400) return 'the host redirects, which is not followed; correct account_url';
  if (status === 404) return `the container ${container} does not exist at account_url`;
  return status >= 500 ? 'Azure failed' : 'Azure refused the request';
}

/** The text of the first element of a name. Errors of Azure have no attributes. */
function readElement(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`);
  const end = xml.indexOf(`</${name}>`, start);
  return start < 0 || end < 0 ? undefined : xml.slice(start + name.length + 2, end);
}
