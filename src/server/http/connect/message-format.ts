import type { Protocol } from '../socket/requests.js';

/** How the messages of a unary call are encoded. */
export type MessageFormat = {
  readonly protocol: Protocol;
  readonly isJson: boolean;
  /** Whether flags and length precede a message. */
  readonly isEnveloped: boolean;
  /** Of a response. */
  readonly contentType: string;
  /** The header that names a message's compression, and the one that lists the accepted ones. */
  readonly encodingHeader: 'content-encoding' | 'grpc-encoding';
  readonly acceptHeader: 'accept-encoding' | 'grpc-accept-encoding';
};

const FORMATS: ReadonlyMap<string, MessageFormat> = new Map([
  ['application/json', plain('json')],
  ['application/proto', plain('proto')],
  ...(['grpc', 'grpc-web'] as const).flatMap((protocol) => [
    [`application/${protocol}`, enveloped(protocol, 'proto')] as const,
    [`application/${protocol}+proto`, enveloped(protocol, 'proto')] as const,
    [`application/${protocol}+json`, enveloped(protocol, 'json')] as const,
  ]),
]);

const JSON_IN_UTF8 = /^([^;]*json) *; *charset="?utf-?8"?$/;

function plain(codec: 'json' | 'proto'): MessageFormat {
  return {
    protocol: 'connect',
    isJson: codec === 'json',
    isEnveloped: false,
    contentType: `application/${codec}`,
    encodingHeader: 'content-encoding',
    acceptHeader: 'accept-encoding',
  };
}

function enveloped(protocol: 'grpc' | 'grpc-web', codec: 'json' | 'proto'): MessageFormat {
  return {
    protocol,
    isJson: codec === 'json',
    isEnveloped: true,
    contentType: `application/${protocol}+${codec}`,
    encodingHeader: 'grpc-encoding',
    acceptHeader: 'grpc-accept-encoding',
  };
}

/** The format of a content type. Undefined for one that no unary call has. */
export function findFormat(contentType: string | undefined): MessageFormat | undefined {
  if (contentType === undefined) return undefined;
  const usual = FORMATS.get(contentType);
  if (usual !== undefined) return usual;
  const type = contentType.toLowerCase();
  return FORMATS.get(JSON_IN_UTF8.exec(type)?.[1] ?? type);
}

/** The format of the message in the query of a GET. Undefined for an unknown encoding. */
export function findQueryFormat(encoding: string | null): MessageFormat | undefined {
  return encoding === 'json' || encoding === 'proto' ? FORMATS.get(`application/${encoding}`) : undefined;
}

/** The protocol that a content type stands for, of unary calls or not. */
export function protocolOf(contentType: string | null | undefined): Protocol {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}
