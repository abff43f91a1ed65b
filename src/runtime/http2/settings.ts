import { encodeFrame } from "./frames.ts";
import {
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FrameType,
  LARGEST_31_BITS,
  ProtocolError,
} from "./protocol.ts";

const Setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

const SETTING_BYTES = 6;
const LARGEST_FRAME_SIZE = 2 ** 24 - 1;

/** With HTTP/2's default of 64 KiB a long list would wait for a round trip after each window. */
export const WINDOW_BYTES = 4 * 1024 * 1024;

/** Error texts are sent in headers. */
export const MAX_HEADER_BYTES = 64 * 1024;

/** Without a dynamic table each block can be decoded alone, and blocks of closed streams can be skipped. */
export const OUR_SETTINGS = encodeSettings([
  [Setting.headerTableSize, 0],
  [Setting.enablePush, 0],
  [Setting.initialWindowSize, WINDOW_BYTES],
  [Setting.maxHeaderListSize, MAX_HEADER_BYTES],
]);

function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * SETTING_BYTES);
  for (const [index, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, index * SETTING_BYTES);
    payload.writeUInt32BE(value, index * SETTING_BYTES + 2);
  }
  return encodeFrame(FrameType.settings, Flag.none, 0, payload);
}

/** The server's settings. */
export interface PeerSettings {
  readonly initialWindowSize: number;
  readonly maxFrameSize: number;
  readonly maxConcurrentStreams: number;
}

/** Defaults until the server's SETTINGS arrive. */
export const DEFAULT_SETTINGS: PeerSettings = {
  initialWindowSize: DEFAULT_WINDOW,
  maxFrameSize: DEFAULT_FRAME_SIZE,
  maxConcurrentStreams: Number.POSITIVE_INFINITY,
};

/** The settings after a SETTINGS frame; those that do not concern a client are ignored. */
export function appliedSettings(before: PeerSettings, payload: Buffer): PeerSettings {
  let { initialWindowSize, maxFrameSize, maxConcurrentStreams } = before;
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const value = payload.readUInt32BE(at + 2);
    switch (payload.readUInt16BE(at)) {
      case Setting.maxConcurrentStreams:
        maxConcurrentStreams = value;
        break;
      case Setting.initialWindowSize:
        if (value > LARGEST_31_BITS) throw new ProtocolError(ErrorCode.flowControlError, `windows of ${value} bytes`);
        initialWindowSize = value;
        break;
      case Setting.maxFrameSize:
        if (value < DEFAULT_FRAME_SIZE || value > LARGEST_FRAME_SIZE) {
          throw new ProtocolError(ErrorCode.protocolError, `frames of ${value} bytes`);
        }
        maxFrameSize = value;
        break;
    }
  }
  return { initialWindowSize, maxFrameSize, maxConcurrentStreams };
}
