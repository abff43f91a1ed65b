import { createServer, type Socket } from "node:net";

const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const PREFACE_BYTES = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".length;
const HEADER_BYTES = 9;
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1];
const LARGEST_FRAME = 16 * 1024;

/** One frame of HTTP/2. */
export function frameOf(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** A header that is not put into the table. */
export function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0), ...[name, value].flatMap((text) => [Buffer.of(text.length), Buffer.from(text)])]);
}

const STATUS_200 = Buffer.of(0x88);

export function headersFrame(stream: number, more: Uint8Array = Buffer.alloc(0)): Buffer {
  const block = Buffer.concat([STATUS_200, literal("content-type", "application/grpc"), more]);
  return frameOf(HEADERS, END_HEADERS, stream, block);
}

/** A whole answer with the status OK. */
export function answerFrames(stream: number, message: Uint8Array): readonly Buffer[] {
  const framed = Buffer.alloc(5 + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, 5);
  const frames = [headersFrame(stream)];
  for (let from = 0; from < framed.length; from += LARGEST_FRAME) {
    frames.push(frameOf(DATA, 0, stream, framed.subarray(from, from + LARGEST_FRAME)));
  }
  return [...frames, frameOf(HEADERS, END_HEADERS | END_STREAM, stream, literal("grpc-status", "0"))];
}

/** Answers one call with raw frames. */
export type RawStream = (socket: Socket, stream: number) => void;

/** An HTTP/2 server on a unix socket that answers every call with raw frames, allowed or not. */
export async function listenRawHttp2(
  path: string,
  answer: RawStream,
): Promise<{ readonly close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.write(frameOf(SETTINGS, 0, 0));
    let received = Buffer.alloc(0);
    let isOpen = false;
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (!isOpen && received.length >= PREFACE_BYTES) {
        received = received.subarray(PREFACE_BYTES);
        isOpen = true;
      }
      for (;;) {
        const size = HEADER_BYTES + (received.length < HEADER_BYTES ? 0 : received.readUIntBE(0, 3));
        if (!isOpen || received.length < size) return;
        const [type, flags, stream] = [received[3], received[4] ?? 0, received.readUInt32BE(5)];
        received = received.subarray(size);
        if (type === SETTINGS && (flags & ACK) === 0) socket.write(frameOf(SETTINGS, ACK, 0));
        if (type === HEADERS) answer(socket, stream);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
