import { createConnection, type Socket } from 'node:net';
import type { ConnectionOptions, NatsConnection } from 'nats';
import { NatsConnectionImpl, setTransportFactory } from 'nats/lib/src/nats-base-client.js';
import { NodeTransport, nodeResolveHost } from 'nats/lib/src/node_transport.js';

/** The client's options, and the signal that aborts connecting. */
export type NatsOptions = ConnectionOptions & { closing: AbortSignal };

/**
 * The client's own transport leaks the socket of an attempt that timed out before the server sent anything, and offers no
 * way to abort an attempt in flight.
 */
class ClosableTransport extends NodeTransport {
  /** The socket while connecting. */
  private opening: Socket | undefined;

  override async connect(
    place: Parameters<NodeTransport['connect']>[0],
    options: ConnectionOptions,
  ): Promise<void> {
    const { closing } = options as NatsOptions;
    const destroy = () => this.destroy();
    closing.addEventListener('abort', destroy, { once: true });
    void this.closedNotification.then(() => closing.removeEventListener('abort', destroy));
    try {
      closing.throwIfAborted();
      await super.connect(place, options);
    } catch (error) {
      closing.removeEventListener('abort', destroy);
      throw error;
    }
  }

  override dial(place: { hostname: string; port: number }): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = createConnection({ port: place.port, host: place.hostname, noDelay: true });
      this.opening = socket;
      let failure = new Error('the connection was closed while connecting');
      socket.on('error', (error) => {
        failure = error;
      });
      socket.once('close', () => reject(failure));
      socket.once('connect', () => {
        socket.removeAllListeners();
        resolve(socket);
      });
    });
  }

  override async close(error?: Error): Promise<void> {
    if (!this.connected) this.destroy();
    await super.close(error);
  }

  private destroy(): void {
    this.opening?.destroy();
    this.socket?.destroy();
  }
}

/** Connects like the client's `connect`. After `closing` aborts no socket stays open and no attempt starts. */
export function connectNats(options: NatsOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new ClosableTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
