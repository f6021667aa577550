import type { Queue } from './jetstream.js';

const SUBJECT = 'api-key-changed';

/** Tells every API process that a key was made, revoked or changed. Nothing is kept for a process that is away. */
export function announceKeyChange(queue: Queue, apiKeyId: string): void {
  queue.connection.publish(`${queue.broadcastPrefix}.${SUBJECT}`, Buffer.from(apiKeyId));
}

/** Calls `changed` with the id of each key that is made, revoked or changed anywhere, until the connection closes. */
export function onKeyChange(queue: Queue, changed: (apiKeyId: string) => void): void {
  queue.connection.subscribe(`${queue.broadcastPrefix}.${SUBJECT}`, {
    callback: (error, message) => {
      if (!error) changed(Buffer.from(message.data).toString());
    },
  });
}
