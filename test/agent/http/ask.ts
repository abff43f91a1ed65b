import { type IncomingHttpHeaders, request } from "node:http";
import { request as requestTls } from "node:https";

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One request over a new connection. Unlike fetch it may set any Host, and trusts any certificate. */
export function ask(address: string, path: string, question: Question = {}): Promise<Reply> {
  const send = address.startsWith("https:") ? requestTls : request;
  const options = { ...question, path, agent: false, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const sent = send(address, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const body = Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, text: body.toString() });
      });
    });
    sent.once("error", reject);
    sent.end();
  });
}
