// An S3-compatible store on disk, in a process of its own. Prints its URL.
import { BUCKET, OWNER } from '../../support/exports/s3/fixture.js';
import { startS3Server } from '../../support/exports/s3/s3-server.js';

const { accessKeyId, secretAccessKey } = OWNER;
const server = await startS3Server({
  buckets: [BUCKET],
  keys: new Map([[accessKeyId, { secretAccessKey }]]),
});
console.log(server.url);
process.once('SIGINT', () => void server.close().finally(() => process.exit(0)));
