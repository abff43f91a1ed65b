import { setImmediate as turn } from "node:timers/promises";
import { encodeFrame, encodeNumberFrame, type Frame } from "../../../src/runtime/http2/frames.ts";
import { Flag, FrameType } from "../../../src/runtime/http2/protocol.ts";
import { listenRaw } from "../../support/socket-servers.ts";

export const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** A server of raw bytes: it sends what the test provides, valid or not, and records what it receives. */
export interface ScriptedPeer {
  /** Everything the client has sent so far, one entry per read. */
  readonly chunks: readonly Buffer[];
  send(...bytes: readonly Uint8Array[]): Promise<void>;
  /** The first matching frames, as soon as there are enough. */
  heard(count: number, fits: (frame: Frame) => boolean): Promise<readonly Frame[]>;
  /** All frames so far, without the client's preface. */
  frames(): readonly Frame[];
  readonly hungUp: Promise<void>;
  close(): Promise<void>;
}

export async function listenScripted(path: string): Promise<ScriptedPeer> {
  const chunks: Buffer[] = [];
  const hungUp = Promise.withResolvers<void>();
  const connected = Promise.withResolvers<(bytes: Uint8Array) => void>();
  const server = await listenRaw(path, (socket) => {
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.once("close", () => hungUp.resolve());
    connected.resolve((bytes) => void socket.write(bytes));
  });

  function frames(): readonly Frame[] {
    return framesIn(Buffer.concat(chunks).subarray(PREFACE.length)).slice(PREFACE_FRAMES);
  }

  return {
    chunks,
    frames,
    hungUp: hungUp.promise,
    close: () => server.close(),
    send: async (...bytes) => {
      const write = await connected.promise;
      for (const part of bytes) {
        write(part);
        // So that the client does not read the parts together.
        await turn();
        await turn();
      }
    },
    heard: async (count, fits) => {
      for (;;) {
        const fitting = frames().filter(fits);
        if (fitting.length >= count) return fitting;
        await turn();
      }
    },
  };
}

/** The complete frames, of any length. */
export function framesIn(bytes: Buffer): readonly Frame[] {
  const found: Frame[] = [];
  let at = 0;
  while (bytes.length - at >= 9 && bytes.length - at >= 9 + bytes.readUIntBE(at, 3)) {
    const payload = bytes.subarray(at + 9, at + 9 + bytes.readUIntBE(at, 3));
    found.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      streamId: bytes.readUInt32BE(at + 5),
      payload,
    });
    at += 9 + payload.length;
  }
  return found;
}

/** SETTINGS and the growth of the connection's window. */
const PREFACE_FRAMES = 2;

export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6);
  for (const [index, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return encodeFrame(FrameType.settings, Flag.none, 0, payload);
}

/** ":status: 200" alone is one byte. */
export const OK_HEADERS = Buffer.from([0x88]);
/** "grpc-status: 0" in plain letters. */
export const OK_TRAILERS = Buffer.concat([Buffer.from([0x00, 11]), Buffer.from("grpc-status"), Buffer.from([1, 0x30])]);

export function headers(streamId: number, block: Uint8Array = OK_HEADERS, flags: number = Flag.endHeaders): Buffer {
  return encodeFrame(FrameType.headers, flags, streamId, block);
}

export function trailers(streamId: number): Buffer {
  return headers(streamId, OK_TRAILERS, Flag.endHeaders | Flag.endStream);
}

export function data(streamId: number, bytes: number | Uint8Array, flags: number = Flag.none): Buffer {
  return encodeFrame(FrameType.data, flags, streamId, typeof bytes === "number" ? Buffer.alloc(bytes) : bytes);
}

export function reset(streamId: number, errorCode: number): Buffer {
  return encodeNumberFrame(FrameType.rstStream, streamId, errorCode);
}

export function windowUpdate(streamId: number, bytes: number): Buffer {
  return encodeNumberFrame(FrameType.windowUpdate, streamId, bytes);
}

export function goAway(lastStreamId: number, errorCode = 0): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStreamId, 0);
  payload.writeUInt32BE(errorCode, 4);
  return encodeFrame(FrameType.goAway, Flag.none, 0, payload);
}
