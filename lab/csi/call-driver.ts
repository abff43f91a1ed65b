import { connect } from "node:http2";
import { createConnection } from "node:net";
import { framed } from "./messages.ts";

const CALL_MS = 10_000;

/** Calls a method with an empty answer. Returns the error in external-attacher's format, or undefined. */
export function callDriver(socket: string, path: string, request: Buffer): Promise<string | undefined> {
  return new Promise((done) => {
    const session = connect("http://localhost", { createConnection: () => createConnection(socket) });
    const finish = (error: string | undefined) => {
      session.destroy();
      done(error);
    };
    session.on("error", (error) => finish(`rpc error: code = Unavailable desc = ${error.message}`));
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    let error: string | undefined = "rpc error: code = Unknown desc = the driver gave no status";
    stream.on("trailers", (trailers) => {
      const message = decodeURIComponent(String(trailers["grpc-message"] ?? ""));
      error = trailers["grpc-status"] === "0" ? undefined : `rpc error: code = Internal desc = ${message}`;
    });
    stream.setTimeout(CALL_MS, () => finish("rpc error: code = DeadlineExceeded desc = context deadline exceeded"));
    stream.on("error", (failure) => finish(`rpc error: code = Unavailable desc = ${failure.message}`));
    stream.on("end", () => finish(error));
    stream.resume();
    stream.end(framed(request));
  });
}
