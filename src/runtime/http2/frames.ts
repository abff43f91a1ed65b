import { DEFAULT_FRAME_SIZE, ErrorCode, Flag, FrameType, ProtocolError } from "./protocol.ts";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const HEADER_BYTES = 9;
/** The reserved bit before stream ids and window sizes is ignored. */
const WITHOUT_RESERVED = 0x7fff_ffff;
const NOTHING: Buffer = Buffer.alloc(0);

export function encodeFrame(type: number, flags: number, streamId: number, payload: Uint8Array = NOTHING): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** A frame whose payload is one number: RST_STREAM and WINDOW_UPDATE. */
export function encodeNumberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value);
  return encodeFrame(type, Flag.none, streamId, payload);
}

/** The last stream id is always 0, because the server opens no streams. */
export function encodeGoAway(errorCode: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(errorCode, 4);
  return encodeFrame(FrameType.goAway, Flag.none, 0, payload);
}

export function hasFlag({ flags }: Frame, flag: number): boolean {
  return (flags & flag) !== 0;
}

export function readUint31(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & WITHOUT_RESERVED;
}

/** Splits a byte stream into frames, independent of chunk boundaries. */
export class FrameReader {
  /** An incomplete frame. */
  #partial = NOTHING;

  /** Passes on each complete frame in order, until the callback throws. */
  push(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    let at = 0;
    while (this.#partial.length > 0 && at < chunk.length) {
      // Copies only the missing bytes: a chunk can be much longer than a frame.
      const part = chunk.subarray(at, at + lacking(this.#partial));
      at += part.length;
      const bytes = Buffer.concat([this.#partial, part]);
      const isWhole = lacking(bytes) === 0;
      this.#partial = isWhole ? NOTHING : bytes;
      if (isWhole) onFrame(decodeFrame(bytes));
    }
    while (at < chunk.length) {
      const ahead = chunk.subarray(at);
      if (lacking(ahead) > 0) {
        // A copy, so that the chunk can be freed.
        this.#partial = Buffer.from(ahead);
        return;
      }
      const frame = decodeFrame(ahead);
      at += HEADER_BYTES + frame.payload.length;
      onFrame(frame);
    }
  }
}

/** The number of missing bytes of the header, or then of the payload; negative if there is more than one frame. */
function lacking(bytes: Buffer): number {
  if (bytes.length < HEADER_BYTES) return HEADER_BYTES - bytes.length;
  const length = bytes.readUIntBE(0, 3);
  // Only the default frame size is allowed: no runtime sends larger frames.
  if (length > DEFAULT_FRAME_SIZE) {
    throw new ProtocolError(
      ErrorCode.frameSizeError,
      `a frame of ${length} bytes, at most ${DEFAULT_FRAME_SIZE} allowed`,
    );
  }
  return Math.max(0, HEADER_BYTES + length - bytes.length);
}

function decodeFrame(bytes: Buffer): Frame {
  return {
    type: bytes.readUInt8(3),
    flags: bytes.readUInt8(4),
    streamId: readUint31(bytes, 5),
    payload: bytes.subarray(HEADER_BYTES, HEADER_BYTES + bytes.readUIntBE(0, 3)),
  };
}

/** The payload of DATA or HEADERS without padding. */
export function withoutPadding(frame: Frame): Buffer {
  const { payload } = frame;
  if (!hasFlag(frame, Flag.padded)) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) {
    throw new ProtocolError(ErrorCode.protocolError, "a frame with more padding than it is long");
  }
  return payload.subarray(1, payload.length - padding);
}

interface FrameRule {
  readonly name: string;
  /** Connection-level frames have the stream id 0. */
  readonly about: "stream" | "connection" | "either";
  readonly bytes?: (length: number) => boolean;
}

const RULES: ReadonlyMap<number, FrameRule> = new Map<number, FrameRule>([
  [FrameType.data, { name: "DATA", about: "stream" }],
  [FrameType.headers, { name: "HEADERS", about: "stream" }],
  [FrameType.priority, { name: "PRIORITY", about: "stream", bytes: (length) => length === 5 }],
  [FrameType.rstStream, { name: "RST_STREAM", about: "stream", bytes: (length) => length === 4 }],
  [FrameType.settings, { name: "SETTINGS", about: "connection", bytes: (length) => length % 6 === 0 }],
  [FrameType.pushPromise, { name: "PUSH_PROMISE", about: "stream" }],
  [FrameType.ping, { name: "PING", about: "connection", bytes: (length) => length === 8 }],
  [FrameType.goAway, { name: "GOAWAY", about: "connection", bytes: (length) => length >= 8 }],
  [FrameType.windowUpdate, { name: "WINDOW_UPDATE", about: "either", bytes: (length) => length === 4 }],
  [FrameType.continuation, { name: "CONTINUATION", about: "stream" }],
]);

/** Throws for an invalid frame. Unknown types are accepted. */
export function checkFrame({ type, streamId, payload }: Frame): void {
  const rule = RULES.get(type);
  if (rule === undefined) return;
  if (rule.about !== "either" && (rule.about === "stream") !== (streamId !== 0)) {
    throw new ProtocolError(ErrorCode.protocolError, `${rule.name} on stream ${streamId}`);
  }
  if (rule.bytes?.(payload.length) === false) {
    throw new ProtocolError(ErrorCode.frameSizeError, `${rule.name} of ${payload.length} bytes`);
  }
}
