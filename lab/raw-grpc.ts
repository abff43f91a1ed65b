import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";

const CALL_MS = 30_000;

/** One unary gRPC call with bytes in and bytes out, for messages that the lab copies without decoding. */
export function rawUnary(
  socketPath: string,
  method: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const session = connectHttp2("http://localhost", { createConnection: () => connect(socketPath) });
  return new Promise<Buffer>((resolve, reject) => {
    session.once("error", reject);
    const call = session.request({
      ":method": "POST",
      ":path": method,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    const received: Buffer[] = [];
    let status: IncomingHttpHeaders = {};
    call.setTimeout(CALL_MS, () => call.destroy(new Error(`${method}: no answer within ${CALL_MS} ms`)));
    call.once("error", reject);
    // An error without a message is in the headers, everything else in the trailers.
    call.once("response", (answer) => {
      status = answer;
    });
    call.once("trailers", (trailers) => {
      status = trailers;
    });
    call.on("data", (chunk: Buffer) => received.push(chunk));
    call.once("end", () => {
      if (status["grpc-status"] === "0") resolve(Buffer.concat(received).subarray(FRAME_HEADER));
      else reject(new Error(`${method}: ${status["grpc-message"]?.toString() ?? "no status"}`));
    });
    call.end(frame(message));
  }).finally(() => session.close());
}

/** One byte for compression and four for the length precede each message. */
const FRAME_HEADER = 5;

function frame(message: Uint8Array): Buffer {
  const header = Buffer.alloc(FRAME_HEADER);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
