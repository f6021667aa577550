import { createConnection, type Socket } from 'node:net';
import type { ConnectionOptions, NatsConnection } from 'nats';
import { NatsConnectionImpl, setTransportFactory } from 'nats/lib/src/nats-base-client.js';
import { NodeTransport, nodeResolveHost } from 'nats/lib/src/node_transport.js';

/** The client's options, and what ends every attempt to connect. */
export type NatsOptions = ConnectionOptions & { closing: AbortSignal };

/**
 * The client's own transport closes no socket of an attempt that timed out before the server had said anything, and
 * gives no hold of one that is under way.
 */
class ClosableTransport extends NodeTransport {
  /** The socket while it connects. */
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
      let failure = new Error('the connection was closed before it stood');
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

/** Connects as the client's `connect` does; once `closing` is aborted no socket stays open and no attempt is made. */
export function connectNats(options: NatsOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new ClosableTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
