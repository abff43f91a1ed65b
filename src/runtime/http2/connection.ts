import { BodySender } from "./body-sender.ts";
import { ReceiveWindow } from "./flow-control.ts";
import {
  checkFrame,
  encodeFrame,
  encodeGoAway,
  encodeNumberFrame,
  type Frame,
  FrameReader,
  hasFlag,
  readUint31,
  withoutPadding,
} from "./frames.ts";
import { type HeaderBlock, HeaderBlocks } from "./header-blocks.ts";
import { decodeHeaders } from "./hpack-decode.ts";
import { Outbox } from "./outbox.ts";
import { DEFAULT_WINDOW, ErrorCode, Flag, FrameType, ProtocolError } from "./protocol.ts";
import { appliedSettings, DEFAULT_SETTINGS, OUR_SETTINGS, type PeerSettings, WINDOW_BYTES } from "./settings.ts";
import { Stream, type StreamEnd, type StreamListener } from "./stream.ts";
import { Streams } from "./streams.ts";
import { openWire, type Wire } from "./wire.ts";

/** The client's preface, with a larger receive window than the default. */
const CLIENT_PREFACE = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  OUR_SETTINGS,
  encodeNumberFrame(FrameType.windowUpdate, 0, WINDOW_BYTES - DEFAULT_WINDOW),
]);

export interface ConnectionOptions {
  readonly onClosed: () => void;
  readonly firstStreamId?: number;
}

/**
 * The client side of one HTTP/2 connection (RFC 9113) over a unix socket: requests with a body, and their answers.
 * Stream errors end the whole connection: the server is a runtime on the same machine, and after a protocol error
 * nothing that it sends is reliable.
 */
export class Connection {
  readonly #wire: Wire;
  readonly #outbox: Outbox;
  readonly #onClosed: () => void;
  readonly #streams: Streams;
  readonly #frames = new FrameReader();
  readonly #headerBlocks = new HeaderBlocks();
  readonly #bodies = new BodySender((frame) => this.#outbox.send(frame));
  readonly #window = new ReceiveWindow(WINDOW_BYTES);
  readonly #settled = Promise.withResolvers<void>();
  /** Undefined until the server's first frame. */
  #settings: PeerSettings | undefined;
  /** Draining: streams in flight continue, and no new ones are opened. */
  #state: "open" | "draining" | "closed" = "open";

  constructor(path: string, { onClosed, firstStreamId = 1 }: ConnectionOptions) {
    this.#onClosed = onClosed;
    this.#streams = new Streams(firstStreamId);
    let isOpen = false;
    this.#wire = openWire(path, {
      onOpen: () => {
        isOpen = true;
        this.#settled.resolve();
      },
      onBytes: (bytes) => this.#read(bytes),
      onEnd: (error) => {
        if (error === undefined) return this.#end({ kind: "lost" });
        this.#end(isOpen ? { kind: "lost", cause: error } : { kind: "failed", error });
      },
    });
    this.#outbox = new Outbox(this.#wire);
    this.#outbox.send(CLIENT_PREFACE);
  }

  /** Resolves when the first requests were sent, or failed. */
  get settings(): Promise<void> {
    return this.#settled.promise;
  }

  get takesRequests(): boolean {
    return this.#state === "open" && this.#streams.hasIds;
  }

  request(headerBlock: Uint8Array, body: Uint8Array, listener: StreamListener): Stream {
    const stream = new Stream(headerBlock, body, listener);
    this.#streams.add(stream);
    this.#openWaiting();
    return stream;
  }

  /** The listener is not called. */
  cancel(stream: Stream): void {
    if (stream.state === "closed") return;
    if (stream.state === "open") this.#reset(stream, ErrorCode.cancel);
    this.#remove(stream);
  }

  /** Consumed bytes are granted to the server again. */
  consumed(stream: Stream, bytes: number): void {
    if (stream.state === "open") this.#grant(stream.id, stream.receiveWindow.consume(bytes));
  }

  /** Aborts all streams at once. */
  close(): void {
    this.#end({ kind: "lost" });
  }

  #openWaiting(): void {
    if (this.#state !== "open") return;
    for (let stream = this.#streams.openNext(); stream !== undefined; stream = this.#streams.openNext()) {
      stream.unasked = this.#settings === undefined;
      // Our headers are a few hundred bytes, so they always fit into one frame.
      this.#outbox.send(encodeFrame(FrameType.headers, Flag.endHeaders, stream.id, stream.headerBlock));
      this.#bodies.begin(stream);
    }
    if (this.#streams.usedUp) this.#drain({ kind: "lost" });
  }

  #remove(stream: Stream): void {
    this.#streams.remove(stream);
    this.#bodies.drop(stream);
    this.#openWaiting();
    if (this.#state === "draining" && this.#streams.noneOpen) this.#end({ kind: "lost" });
  }

  #finish(stream: Stream, end: StreamEnd): void {
    this.#remove(stream);
    stream.listener.onEnd(end);
  }

  #drain(end: StreamEnd): void {
    this.#state = "draining";
    for (const stream of this.#streams.removeWaiting()) stream.listener.onEnd(end);
    if (this.#streams.noneOpen) this.#end(end);
  }

  #end(end: StreamEnd): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#wire.close();
    this.#settled.resolve();
    for (const stream of this.#streams.removeAll()) stream.listener.onEnd(end);
    this.#onClosed();
  }

  #reset(stream: Stream, errorCode: number): void {
    this.#outbox.send(encodeNumberFrame(FrameType.rstStream, stream.id, errorCode));
  }

  #grant(streamId: number, bytes: number): void {
    if (bytes > 0) this.#outbox.send(encodeNumberFrame(FrameType.windowUpdate, streamId, bytes));
  }

  #read(chunk: Buffer): void {
    try {
      this.#frames.push(chunk, (frame) => this.#take(frame));
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.#outbox.send(encodeGoAway(error instanceof ProtocolError ? error.errorCode : ErrorCode.internalError));
      this.#outbox.flush();
      this.#end({ kind: "failed", error });
    }
  }

  #take(frame: Frame): void {
    if (this.#state === "closed") return;
    checkFrame(frame);
    this.#headerBlocks.expect(frame);
    if (this.#settings === undefined && (frame.type !== FrameType.settings || hasFlag(frame, Flag.ack))) {
      throw new ProtocolError(ErrorCode.protocolError, "the first frame is not SETTINGS");
    }
    switch (frame.type) {
      case FrameType.data:
        return this.#takeData(frame);
      case FrameType.headers:
      case FrameType.continuation:
        return this.#takeHeaders(this.#headerBlocks.push(frame));
      case FrameType.rstStream:
        return this.#takeReset(frame);
      case FrameType.settings:
        return this.#takeSettings(frame);
      case FrameType.ping:
        return this.#takePing(frame);
      case FrameType.goAway:
        return this.#takeGoAway(frame);
      case FrameType.windowUpdate:
        return this.#takeWindowUpdate(frame);
      case FrameType.pushPromise:
        throw new ProtocolError(ErrorCode.protocolError, "a push, which was not allowed");
      default:
        // PRIORITY and unknown frame types are ignored.
        return;
    }
  }

  #takeData(frame: Frame): void {
    const stream = this.#streams.find(frame.streamId);
    const { length } = frame.payload;
    this.#window.receive(length);
    // Granted at once, and not when the reader has consumed it: a slow reader must not block the other streams. The
    // buffered data is limited by the window of each stream.
    this.#grant(0, this.#window.consume(length));
    if (stream === undefined) return;
    stream.receiveWindow.receive(length);
    if (!stream.answered) throw new ProtocolError(ErrorCode.protocolError, "data before any headers");
    const data = withoutPadding(frame);
    this.consumed(stream, length - data.length);
    if (data.length > 0) stream.listener.onData(data);
    if (hasFlag(frame, Flag.endStream)) this.#complete(stream);
  }

  #takeHeaders(block: HeaderBlock | undefined): void {
    const stream = block === undefined ? undefined : this.#streams.find(block.streamId);
    if (block === undefined || stream === undefined) return;
    const headers = decodeHeaders(block.bytes);
    if (stream.answered && !block.endStream) {
      throw new ProtocolError(ErrorCode.protocolError, "headers in the middle of an answer");
    }
    if (!stream.answered) {
      const status = headers.get(":status");
      if (status === undefined) throw new ProtocolError(ErrorCode.protocolError, "an answer without a status");
      // An informational response: the final one follows.
      if (status.startsWith("1")) return;
      stream.answered = true;
    }
    stream.listener.onHeaders(headers);
    if (block.endStream) this.#complete(stream);
  }

  #complete(stream: Stream): void {
    // The listener may have cancelled the stream meanwhile.
    if (stream.state !== "open") return;
    // The server does not need the rest of the request.
    if (stream.sent < stream.body.length) this.#reset(stream, ErrorCode.noError);
    this.#finish(stream, { kind: "complete" });
  }

  #takeReset({ streamId, payload }: Frame): void {
    const stream = this.#streams.find(streamId);
    if (stream === undefined) return;
    const errorCode = payload.readUInt32BE(0);
    // The server refuses a stream above a limit that was not yet known, and guarantees that it did not process the
    // request.
    if (errorCode === ErrorCode.refusedStream && stream.unasked && this.takesRequests) {
      this.#bodies.drop(stream);
      this.#streams.add(stream);
      return this.#openWaiting();
    }
    this.#finish(stream, { kind: "reset", errorCode });
  }

  #takeSettings(frame: Frame): void {
    if (hasFlag(frame, Flag.ack)) {
      if (frame.payload.length > 0) throw new ProtocolError(ErrorCode.frameSizeError, "settings that acknowledge some");
      return;
    }
    this.#settings = appliedSettings(this.#settings ?? DEFAULT_SETTINGS, frame.payload);
    this.#outbox.send(encodeFrame(FrameType.settings, Flag.ack, 0));
    this.#bodies.apply(this.#settings, this.#streams.open);
    this.#streams.allow(this.#settings.maxConcurrentStreams);
    this.#openWaiting();
  }

  #takePing(frame: Frame): void {
    if (!hasFlag(frame, Flag.ack)) this.#outbox.send(encodeFrame(FrameType.ping, Flag.ack, 0, frame.payload));
  }

  #takeGoAway({ payload }: Frame): void {
    const lastId = readUint31(payload, 0);
    const cause = new Error(`the server ends the connection with error code ${payload.readUInt32BE(4)}`);
    const end: StreamEnd = { kind: "lost", cause };
    this.#drain(end);
    for (const stream of this.#streams.open) {
      if (stream.id > lastId) this.#finish(stream, end);
    }
  }

  #takeWindowUpdate({ streamId, payload }: Frame): void {
    const bytes = readUint31(payload, 0);
    if (bytes === 0) throw new ProtocolError(ErrorCode.protocolError, "a window that grows by nothing");
    if (streamId === 0) return this.#bodies.growConnection(bytes);
    const stream = this.#streams.find(streamId);
    if (stream !== undefined) this.#bodies.growStream(stream, bytes);
  }
}
