import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { connect } from "node:net";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

/** containerd sends 16 MiB at most by default; CRI-O and tuned nodes send more. */
const READ_MAX_BYTES = 32 * 1024 * 1024;

/** The host part is never looked up: the connection goes to the socket. Older Go servers want a plain name here. */
const BASE_URL = "http://localhost";

/** One HTTP/2 connection to a unix socket. Opened by the first call, re-opened by the first call after a restart. */
export interface SocketTransport {
  readonly path: string;
  readonly transport: Transport;
  close(): void;
}

export function openSocket(path: string, interceptors: Interceptor[] = []): SocketTransport {
  const sessionManager = new CalmSessionManager(BASE_URL, undefined, { createConnection: () => connect(path) });
  const transport = createGrpcTransport({
    baseUrl: BASE_URL,
    sessionManager,
    interceptors,
    readMaxBytes: READ_MAX_BYTES,
    // Compression over a local socket costs time on both sides and saves nothing.
    acceptCompression: [],
    // unghost's schema is a part of the real one; keeping what it does not know would double the memory of a list.
    binaryOptions: { readUnknownFields: false },
  });
  return { path, transport, close: () => sessionManager.abort() };
}

/**
 * A session that breaks tells its streams, and so the call that was under way. Its own error event may come after the
 * manager has let go of it (seen when a peer that is no gRPC server is closed at once), and would then end the process.
 */
class CalmSessionManager extends Http2SessionManager {
  readonly #calmed = new WeakSet<ClientHttp2Session>();

  override async request(...args: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...args);
    const session = stream.session as ClientHttp2Session | undefined;
    if (session && !this.#calmed.has(session)) {
      this.#calmed.add(session);
      session.on("error", () => {});
    }
    return stream;
  }
}
