/** Which operation a request is. */
import { type Answer, type Call, deleteObject, getObject, listObjects, putObject } from './objects.js';
import { S3Error } from './s3-error.js';
import { abortUpload, completeUpload, createUpload, listUploads, uploadPart } from './uploads.js';

/** An operation by the name that the SDK gives it, with the permission that it takes. */
export type Operation = { name: string; action: string; run: (call: Call) => Answer | Promise<Answer> };

const UNKNOWN: Operation = {
  name: 'Unknown',
  action: 's3:*',
  run: () => {
    throw new S3Error(
      'NotImplemented',
      'A header or query you provided implies functionality that is not implemented.',
    );
  },
};

/** Subresources that take part in the choice; others are not implemented. */
const SUBRESOURCES = ['uploads', 'uploadId', 'partNumber', 'list-type'];
const PARAMETERS =
  /^(?:prefix|max-keys|max-uploads|continuation-token|start-after|x-id|fetch-owner|key-marker)$/;

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'PUT key': { name: 'PutObject', action: 's3:PutObject', run: putObject },
  'GET key': { name: 'GetObject', action: 's3:GetObject', run: (call) => getObject(call, false) },
  'HEAD key': { name: 'HeadObject', action: 's3:GetObject', run: (call) => getObject(call, true) },
  'DELETE key': { name: 'DeleteObject', action: 's3:DeleteObject', run: deleteObject },
  'GET bucket list-type': { name: 'ListObjectsV2', action: 's3:ListBucket', run: listObjects },
  'HEAD bucket': { name: 'HeadBucket', action: 's3:ListBucket', run: () => ({ status: 200 }) },
  'POST key uploads': { name: 'CreateMultipartUpload', action: 's3:PutObject', run: createUpload },
  'PUT key uploadId partNumber': { name: 'UploadPart', action: 's3:PutObject', run: uploadPart },
  'POST key uploadId': { name: 'CompleteMultipartUpload', action: 's3:PutObject', run: completeUpload },
  'DELETE key uploadId': {
    name: 'AbortMultipartUpload',
    action: 's3:AbortMultipartUpload',
    run: abortUpload,
  },
  'GET bucket uploads': {
    name: 'ListMultipartUploads',
    action: 's3:ListBucketMultipartUploads',
    run: listUploads,
  },
};

/** The operation of a request, or one that refuses. */
export function findOperation(
  method: string,
  { key, query }: { key: string; query: URLSearchParams },
): Operation {
  if ([...query.keys()].some((name) => !SUBRESOURCES.includes(name) && !PARAMETERS.test(name)))
    return UNKNOWN;
  const given = SUBRESOURCES.filter((name) => query.has(name));
  const route = [method, key === '' ? 'bucket' : 'key', ...given].join(' ');
  return Object.hasOwn(OPERATIONS, route) ? (OPERATIONS[route] as Operation) : UNKNOWN;
}
