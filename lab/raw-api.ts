import { type ClientRequest, request } from "node:http";
import { createInterface } from "node:readline";

/** A minimal client of an API server. */
export interface RawApi {
  ask(method: string, path: string, options?: AskOptions): Promise<RawAnswer>;
  /** Settles when the server has accepted the watch. */
  watch(path: string): Promise<RawWatch>;
}

export interface AskOptions {
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
}

export interface RawAnswer {
  readonly code: number;
  readonly body: unknown;
}

export interface WatchLine {
  readonly type: string;
  readonly object: {
    readonly kind?: string;
    readonly code?: number;
    readonly reason?: string;
    readonly metadata?: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> };
  };
}

export interface RawWatch {
  /** Everything that was sent so far. */
  readonly lines: readonly WatchLine[];
  /** Settles when the server ends it. */
  readonly ended: Promise<void>;
  close(): void;
}

type Place = { readonly socketPath: string } | { readonly port: number };

export function openRawApi(place: Place): RawApi {
  function send(method: string, path: string, { body, contentType, accept }: AskOptions): ClientRequest {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = {
      accept: accept ?? "application/json",
      // Node sends neither a length nor chunks with DELETE on its own.
      "content-length": Buffer.byteLength(text),
      ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
    };
    const asked = request({ ...place, method, path, headers, agent: false });
    asked.end(text);
    return asked;
  }

  return {
    ask: (method, path, options = {}) =>
      new Promise((done, failed) => {
        const asked = send(method, path, options);
        asked.once("error", failed);
        asked.once("response", (answer) => {
          const chunks: Buffer[] = [];
          answer.on("data", (chunk: Buffer) => chunks.push(chunk));
          answer.once("error", failed);
          answer.once("end", () => {
            done({ code: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) });
          });
        });
      }),
    watch: (path) =>
      new Promise((done, failed) => {
        const asked = send("GET", path, {});
        asked.once("error", failed);
        asked.once("response", (answer) => {
          const lines: WatchLine[] = [];
          const reader = createInterface(answer).on("line", (line) => lines.push(JSON.parse(line) as WatchLine));
          // A watch that we close ourselves ends with an error.
          for (const source of [asked, answer, reader]) source.on("error", () => undefined);
          const ended = new Promise<void>((over) => answer.once("close", () => over()));
          done({ lines, ended, close: () => asked.destroy() });
        });
      }),
  };
}
