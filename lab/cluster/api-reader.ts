import { request } from "node:http";

/** Reads the API through `kubectl proxy` on a unix socket: cheap enough for polling, unlike starting kubectl. */
export interface ApiReader {
  text(path: string): Promise<string>;
  get<T>(path: string): Promise<T>;
}

const ANSWER_MS = 30_000;

export function openApiReader(socketPath: string): ApiReader {
  const text = (path: string) =>
    new Promise<string>((done, failed) => {
      const asked = request({ socketPath, path, timeout: ANSWER_MS, agent: false }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", failed);
        answer.once("end", () => {
          const body = Buffer.concat(chunks).toString();
          if (answer.statusCode === 200) done(body);
          else failed(new Error(`GET ${path} answered ${answer.statusCode}: ${body.slice(0, 500)}`));
        });
      });
      asked.once("timeout", () => asked.destroy(new Error(`GET ${path} did not answer within ${ANSWER_MS} ms`)));
      asked.once("error", failed);
      asked.end();
    });
  return { text, get: async <T>(path: string) => JSON.parse(await text(path)) as T };
}
