/**
 * The program of a hashing thread, as text: a module of its own would be one more file beside each bundle that the library
 * is part of.
 *
 * `workerData`: `{root, follow}`. A job is `{from, paths, isOpenedOnly}`; the reply to it `{from, bytes, hashes, problems}`,
 * of the first files of the job: of those that were begun within 50 ms, so that another thread can take the others. A
 * problem is `[place in the reply, message]`. `{read}` comes before a reply, after each 16 MiB of a large file.
 */
export const THREAD_SOURCE = `'use strict';
const { parentPort, workerData: { root, follow } } = require('node:worker_threads');
const { openSync, fstatSync, readSync, closeSync, constants } = require('node:fs');
const { createHash, hash } = require('node:crypto');

const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK || 0) | (follow ? 0 : constants.O_NOFOLLOW || 0);
const MAX_JOB_MS = 50;
const REPORTED_BYTES = 16 * 1024 * 1024;
const CHANGED = 'changed while it was read';
const buffer = Buffer.allocUnsafeSlow(1024 * 1024);

class Problem extends Error {}

function hashLarge(fd, size) {
  const sum = createHash('sha256');
  let [read, reported] = [0, 0];
  for (let length; (length = readSync(fd, buffer, 0, buffer.length, null)) > 0; ) {
    sum.update(buffer.subarray(0, length));
    read += length;
    if (read > size) break;
    if (read - reported < REPORTED_BYTES) continue;
    parentPort.postMessage({ read: read - reported });
    reported = read;
  }
  if (read !== size) throw new Problem(CHANGED);
  return { hex: sum.digest('hex'), rest: read - reported };
}

function hashSmall(fd, size) {
  let length = 0;
  for (let more; length <= size && (more = readSync(fd, buffer, length, size + 1 - length, null)) > 0; length += more);
  if (length !== size) throw new Problem(CHANGED);
  return { hex: hash('sha256', buffer.subarray(0, length), 'hex'), rest: length };
}

function hashFile(path, isOpenedOnly) {
  const fd = openSync(root + '/' + path, FLAGS);
  try {
    if (isOpenedOnly) return { size: 0, hex: '', rest: 0 };
    const before = fstatSync(fd);
    if (!before.isFile()) throw new Problem('is no file any more');
    const { size } = before;
    const { hex, rest } = size < buffer.length ? hashSmall(fd, size) : hashLarge(fd, size);
    const after = fstatSync(fd);
    if (after.size !== size || after.mtimeMs !== before.mtimeMs) throw new Problem(CHANGED);
    return { size, hex, rest };
  } finally {
    closeSync(fd);
  }
}

function messageOf(error) {
  if (error instanceof Problem) return error.message;
  if (error.code === 'ENOENT') return 'vanished';
  if (error.code === 'ELOOP') return 'is no file any more';
  return 'cannot be read (' + (error.code || error.message) + ')';
}

parentPort.on('message', ({ from, paths, isOpenedOnly }) => {
  const end = performance.now() + MAX_JOB_MS;
  const reply = { from, bytes: [], hashes: [], problems: [], read: 0 };
  for (const path of paths) {
    if (reply.bytes.length > 0 && performance.now() > end) break;
    let done = { size: 0, hex: '', rest: 0 };
    try {
      done = hashFile(path, isOpenedOnly);
    } catch (error) {
      reply.problems.push([reply.bytes.length, messageOf(error)]);
    }
    reply.bytes.push(done.size);
    reply.hashes.push(done.hex);
    reply.read += done.rest;
  }
  parentPort.postMessage(reply);
});
`;
