import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Api, openApi } from "../../src/kube/api.ts";
import { deletePod } from "../../src/kube/pods.ts";

const MEANT = { namespace: "shop", name: "db-0", uid: "uid-1" } as const;

/** An API server that answers everything with one code, and records its requests. */
async function serve(code: number): Promise<{ readonly api: Api; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    asked.push(`${request.method} ${request.url} ${request.headers["content-type"]} ${await text(request)}`);
    response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify({ message: "as it is" }));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: new URL(`http://127.0.0.1:${port}`), tls: { insecure: false }, from: "the test" };
  const api = openApi(access, { timeoutMs: 60_000 });
  onTestFinished(() => {
    api.close();
    server.close();
    server.closeAllConnections();
  });
  return { api, asked };
}

describe("delete requests", () => {
  test.each([200, 202, 404])("contain the uid of the object; %i means deleted", async (code) => {
    const { api, asked } = await serve(code);

    await deletePod(api, MEANT);

    const options = { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "uid-1" } };
    expect(asked).toEqual([`DELETE /api/v1/namespaces/shop/pods/db-0 application/json ${JSON.stringify(options)}`]);
  });

  test.each([
    [409, "conflict"],
    [403, "forbidden"],
    [500, "busy"],
  ])("%i means refused, and is not retried", async (code, kind) => {
    const { api, asked } = await serve(code);

    await expect(deletePod(api, MEANT)).rejects.toMatchObject({
      kind,
      message: expect.stringMatching("as it is"),
    });

    expect(asked).toHaveLength(1);
  });
});
