/** The constants of RFC 9113 that this client needs. */
export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const Flag = { none: 0, ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const ErrorCode = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;

/** Windows and stream ids have 31 bits. */
export const LARGEST_31_BITS = 2 ** 31 - 1;

/** The values that apply until SETTINGS arrive. */
export const DEFAULT_WINDOW = 65_535;
export const DEFAULT_FRAME_SIZE = 16_384;

/** The peer violates the protocol; the connection is closed. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly errorCode: number;

  constructor(errorCode: number, message: string) {
    super(message);
    this.errorCode = errorCode;
  }
}
