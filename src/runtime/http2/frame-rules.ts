import type { Frame } from "./frames.ts";
import { ErrorCode, FrameType, ProtocolError } from "./protocol.ts";

interface FrameRule {
  readonly name: string;
  /** Frames about the connection as a whole have the stream id 0. */
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

/** Throws where a frame is invalid on its own. Unknown types are accepted. */
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
