import type { DescMessage, DescMethod, Message } from '@bufbuild/protobuf';

/** A call of an RPC that anyone may call. */
export type PublicCall = {
  /** Whether the server has begun to close. */
  readonly isClosing: () => boolean;
  /** Aborts when the call is over, or the server begins to close. Created on first use. */
  readonly signal: () => AbortSignal;
};

/** An RPC that anyone may call, without credentials or limits per key. */
export type PublicRpc = {
  /** `/grpc.health.v1.Health/Check` */
  readonly path: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
} & (
  | { readonly kind: 'unary'; readonly answer: (request: never, call: PublicCall) => Promise<Message> }
  | {
      readonly kind: 'server_streaming';
      readonly answer: (request: never, call: PublicCall) => AsyncIterable<Message>;
    }
  /** Answers each message of a call in turn. */
  | { readonly kind: 'bidi_streaming'; readonly open: () => (request: never) => Message }
);

/** The path and the message types of a method. */
export function describeRpc({
  parent,
  name,
  input,
  output,
}: DescMethod): Pick<PublicRpc, 'path' | 'input' | 'output'> {
  return { path: `/${parent.typeName}/${name}`, input, output };
}
