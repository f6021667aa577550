import type { Queue } from './jetstream.js';

const SUBJECT = 'api-key-changed';

/** Notifies every API process of a created, revoked or changed key. Messages are not stored for absent processes. */
export function announceKeyChange(queue: Queue, apiKeyId: string): void {
  queue.connection.publish(`${queue.broadcastPrefix}.${SUBJECT}`, Buffer.from(apiKeyId));
}

/** Calls `changed` with the id of each created, revoked or changed key until the connection closes. */
export function onKeyChange(queue: Queue, changed: (apiKeyId: string) => void): void {
  queue.connection.subscribe(`${queue.broadcastPrefix}.${SUBJECT}`, {
    callback: (error, message) => {
      if (!error) changed(Buffer.from(message.data).toString());
    },
  });
}
