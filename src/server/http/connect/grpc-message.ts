/**
 * Spells the `grpc-message` of trailers that Connect has set so that every client reads it: Connect escapes the ASCII
 * punctuation as well, which gRPC does not ask for and @grpc/grpc-js, which reads it by decodeURI, leaves escaped.
 */
export function setGrpcMessage(trailer: Headers): Headers {
  const message = trailer.get('grpc-message');
  if (message !== null) trailer.set('grpc-message', encodeURI(decodeURIComponent(message)));
  return trailer;
}
