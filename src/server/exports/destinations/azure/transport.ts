/**
 * Sends the requests of Azure's SDK, whose own client would connect to any address. Its errors would have the URL in
 * them, with the shared access signature; those of this transport have not.
 */
import { Readable } from 'node:stream';
import type { IHttpClient, WebResource } from '@azure/storage-blob';
import type { HttpClient } from '../http-client.js';
import { AzureFailure } from './azure-error.js';

/** Creates a client for the SDK. It rejects with `AzureFailure` if the status is not one of success. */
export function createTransport(http: HttpClient): IHttpClient {
  return {
    sendRequest: async (request) => {
      const { method, url } = request;
      const headers = Object.fromEntries(
        request.headers.headersArray().map(({ name, value }) => [name, value]),
      );
      const signal = signalOf(request);
      const answer = await http.send({ method, url, headers, body: bodyOf(request), signal });
      if (answer.status < 200 || answer.status >= 300) throw new AzureFailure(answer);
      return {
        request,
        status: answer.status,
        headers: copyHeaders(request, answer.headers),
        ...(method === 'GET' ? { readableStreamBody: Readable.from([answer.bytes]) } : { bodyAsText: '' }),
      };
    },
  };
}

/** The SDK passes on what it was given. */
function signalOf({ abortSignal }: WebResource): AbortSignal {
  return (abortSignal as AbortSignal | undefined) ?? new AbortController().signal;
}

function bodyOf({ body }: WebResource): string | Readable | undefined {
  return typeof body === 'function' ? (body() as Readable) : (body as string | undefined);
}

function copyHeaders(request: WebResource, values: Readonly<Record<string, string>>): WebResource['headers'] {
  const headers = request.headers.clone();
  for (const name of headers.headerNames()) headers.remove(name);
  for (const [name, value] of Object.entries(values)) headers.set(name, value);
  return headers;
}
