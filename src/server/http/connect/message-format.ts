import type { Protocol } from '../socket/requests.js';

/** How the messages of a call are encoded. */
export type MessageFormat = {
  readonly protocol: Protocol;
  readonly isJson: boolean;
  /** Whether flags and length precede a message. */
  readonly isEnveloped: boolean;
  /** Of a response. */
  readonly contentType: string;
  /** The header that names a message's compression, and the one that lists the accepted ones. */
  readonly encodingHeader: 'content-encoding' | 'grpc-encoding' | 'connect-content-encoding';
  readonly acceptHeader: 'accept-encoding' | 'grpc-accept-encoding' | 'connect-accept-encoding';
};

type Formats = ReadonlyMap<string, MessageFormat>;

const GRPC_FORMATS = (['grpc', 'grpc-web'] as const).flatMap((protocol) => [
  [`application/${protocol}`, enveloped(protocol, 'proto')] as const,
  [`application/${protocol}+proto`, enveloped(protocol, 'proto')] as const,
  [`application/${protocol}+json`, enveloped(protocol, 'json')] as const,
]);

const UNARY: Formats = new Map([
  ['application/json', plain('json')],
  ['application/proto', plain('proto')],
  ...GRPC_FORMATS,
]);

const STREAMS: Formats = new Map([
  ['application/connect+json', streamed('json')],
  ['application/connect+proto', streamed('proto')],
  ...GRPC_FORMATS,
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

function streamed(codec: 'json' | 'proto'): MessageFormat {
  return {
    ...plain(codec),
    isEnveloped: true,
    contentType: `application/connect+${codec}`,
    encodingHeader: 'connect-content-encoding',
    acceptHeader: 'connect-accept-encoding',
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

/** The format of a unary call, by its content type. Undefined for one that no unary call has. */
export function findFormat(contentType: string | undefined): MessageFormat | undefined {
  return find(UNARY, contentType);
}

/** The format of a call that streams, by its content type. Undefined for one that no stream has. */
export function findStreamFormat(contentType: string | undefined): MessageFormat | undefined {
  return find(STREAMS, contentType);
}

function find(formats: Formats, contentType: string | undefined): MessageFormat | undefined {
  if (contentType === undefined) return undefined;
  const usual = formats.get(contentType);
  if (usual !== undefined) return usual;
  const type = contentType.toLowerCase();
  return formats.get(JSON_IN_UTF8.exec(type)?.[1] ?? type);
}

/** The format of the message in the query of a GET. Undefined for an unknown encoding. */
export function findQueryFormat(encoding: string | null): MessageFormat | undefined {
  return encoding === 'json' || encoding === 'proto' ? UNARY.get(`application/${encoding}`) : undefined;
}

/** The protocol that a content type stands for, of unary calls or not. */
export function protocolOf(contentType: string | null | undefined): Protocol {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}
