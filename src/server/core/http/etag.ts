import { hash } from 'node:crypto';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../errors.js';

/** The entity tags of a list; they may hold commas. */
const TAGS = /(?:W\/)?"[^"]*"/g;

/** Returns a strong entity tag (RFC 9110, 8.8.3) of a body: a hash of its bytes, or of text that determines them. */
export function etagOf(body: Uint8Array | string): string {
  return `"${hash('sha256', body, 'base64url')}"`;
}

/** Returns whether `If-None-Match` matches the tag, so that the response is 304. Weak comparison (RFC 9110, 13.1.2). */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  return header !== undefined && names(header, etag, /^W\//);
}

/**
 * Throws `request.precondition_failed` unless `If-Match` matches the tag of a response to GET or HEAD; before
 * `If-None-Match` is evaluated (RFC 9110, 13.2.2). Strong comparison (13.1.1): a weak tag matches nothing.
 */
export function assertMatch(header: string | undefined, etag: string): void {
  if (header === undefined || names(header, etag)) return;
  const message = `what is here has the entity tag ${etag}, which If-Match does not name`;
  throw new ApiError(ErrorCode.REQUEST_PRECONDITION_FAILED, message);
}

/** Whether a list of entity tags has the tag once what `ignored` matches is left out of each, or is `*`. */
function names(header: string, etag: string, ignored?: RegExp): boolean {
  if (header.trim() === '*') return true;
  return (header.match(TAGS) ?? []).some((tag) => (ignored ? tag.replace(ignored, '') : tag) === etag);
}
