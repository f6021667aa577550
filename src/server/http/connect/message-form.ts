import { parseContentType as parseConnect } from '@connectrpc/connect/protocol-connect';
import { parseContentType as parseGrpc } from '@connectrpc/connect/protocol-grpc';
import { parseContentType as parseGrpcWeb } from '@connectrpc/connect/protocol-grpc-web';
import type { Surface } from '../socket/requests.js';

/** How the message of a unary call stands in its body. */
export type Form = {
  isJson: boolean;
  /** Whether flags and length stand before it. */
  isEnveloped: boolean;
  /** The header that names its compression, and the one of the answer that names those that are read. */
  encodingHeader: 'content-encoding' | 'grpc-encoding';
  acceptHeader: 'accept-encoding' | 'grpc-accept-encoding';
};

const PLAIN = {
  isEnveloped: false,
  encodingHeader: 'content-encoding',
  acceptHeader: 'accept-encoding',
} as const;
const ENVELOPED = {
  isEnveloped: true,
  encodingHeader: 'grpc-encoding',
  acceptHeader: 'grpc-accept-encoding',
} as const;

/** The protocol that a content type stands for. */
export function surfaceOf(contentType: string | null | undefined): Surface {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}

/** The form that a content type stands for; undefined for one that no unary call has. */
export function findForm(contentType: string | undefined): Form | undefined {
  const type = contentType ?? null;
  const connect = parseConnect(type);
  if (connect !== undefined) return connect.stream ? undefined : { ...PLAIN, isJson: !connect.binary };
  const grpc = parseGrpc(type) ?? parseGrpcWeb(type);
  return grpc && { ...ENVELOPED, isJson: !grpc.binary };
}

/** The form of the message in the query of a call by GET; undefined for an encoding that there is not. */
export function findQueryForm(encoding: string | null): Form | undefined {
  if (encoding !== 'json' && encoding !== 'proto') return undefined;
  return { ...PLAIN, isJson: encoding === 'json' };
}
