import type { Headers } from "../../../src/runtime/http2/hpack-decode.ts";
import type { StreamEnd, StreamListener } from "../../../src/runtime/http2/stream.ts";

/** Records the events of a stream, and consumes nothing unless the test does. */
export class RecordedStream implements StreamListener {
  readonly headers: Headers[] = [];
  readonly chunks: Uint8Array[] = [];
  readonly #end = Promise.withResolvers<StreamEnd>();

  get ended(): Promise<StreamEnd> {
    return this.#end.promise;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  onHeaders(headers: Headers): void {
    this.headers.push(headers);
  }

  onData(bytes: Uint8Array): void {
    this.chunks.push(bytes);
  }

  onEnd(end: StreamEnd): void {
    this.#end.resolve(end);
  }
}
