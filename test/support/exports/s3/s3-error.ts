/** Errors as S3 and STS answer them. */

/** A refusal: its code and status as AWS spells them. */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: string,
    message: string,
    options: { status?: number; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.code = code;
    this.status = options.status ?? STATUS[code] ?? 400;
    this.headers = options.headers ?? {};
  }
}

/** Statuses other than 400. */
const STATUS: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  ConditionalRequestConflict: 409,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidClientTokenId: 403,
  InvalidRange: 416,
  MethodNotAllowed: 405,
  MissingContentLength: 411,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NotImplemented: 501,
  PermanentRedirect: 301,
  PreconditionFailed: 412,
  QuotaExceeded: 507,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
};

/** Escapes text for an element of XML. */
function escapeXml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] as string);
}

/** An element for each member that is not undefined. */
export function xmlElements(members: Readonly<Record<string, string | number | undefined>>): string {
  return Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`)
    .join('');
}

/** A document as S3 answers it; `content` is XML. */
export function xmlDocument(root: string, content: string): string {
  const namespace = root === 'Error' ? '' : ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}${namespace}>${content}</${root}>`;
}
