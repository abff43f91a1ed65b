import { readFileSync } from "node:fs";
import { request } from "node:https";

/** The requests of a controller, with the certificate of a kubeconfig from lab/cluster/kubeconfig.ts. */
export interface ApiWriter {
  get<T>(path: string): Promise<T>;
  merge(path: string, patch: object): Promise<void>;
  /** Creates the object if it does not exist. */
  apply(path: string, object: object): Promise<void>;
}

const ANSWER_MS = 30_000;

interface Kubeconfig {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly "certificate-authority-data": string } },
  ];
  readonly users: readonly [
    { readonly user: { readonly "client-certificate-data": string; readonly "client-key-data": string } },
  ];
}

export function openApiWriter(kubeconfig: string): ApiWriter {
  const config = JSON.parse(readFileSync(kubeconfig, "utf8")) as Kubeconfig;
  const [{ cluster }] = config.clusters;
  const [{ user }] = config.users;
  const credentials = {
    ca: Buffer.from(cluster["certificate-authority-data"], "base64"),
    cert: Buffer.from(user["client-certificate-data"], "base64"),
    key: Buffer.from(user["client-key-data"], "base64"),
  };

  function send(method: string, path: string, type?: string, body?: object): Promise<string> {
    return new Promise((done, failed) => {
      const headers = type === undefined ? {} : { "content-type": type };
      const asked = request(`${cluster.server}${path}`, { method, headers, ...credentials, timeout: ANSWER_MS });
      asked.once("response", (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", failed);
        answer.once("end", () => {
          const text = Buffer.concat(chunks).toString();
          if ((answer.statusCode ?? 500) < 300) done(text);
          else failed(new Error(`${method} ${path} answered ${answer.statusCode}: ${text.slice(0, 500)}`));
        });
      });
      asked.once("timeout", () => asked.destroy(new Error(`${method} ${path} did not answer within ${ANSWER_MS} ms`)));
      asked.once("error", failed);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  return {
    get: async <T>(path: string) => JSON.parse(await send("GET", path)) as T,
    merge: async (path, patch) => {
      await send("PATCH", path, "application/merge-patch+json", patch);
    },
    apply: async (path, object) => {
      await send("PATCH", `${path}?fieldManager=lab&force=true`, "application/apply-patch+yaml", object);
    },
  };
}
