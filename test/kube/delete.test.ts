import { describe, expect, onTestFinished, test } from "vitest";
import { type Api, openApi } from "../../src/kube/api.ts";
import { deletePod } from "../../src/kube/pods.ts";
import { type Asked, startStub, statusOf } from "./stub-server.ts";

const POD = { namespace: "shop", name: "db-0", uid: "uid-1" } as const;

/** An API server that answers everything with one code. */
async function serve(code: number): Promise<{ readonly api: Api; readonly asked: readonly Asked[] }> {
  const { url, asked, close } = await startStub(() => statusOf(code, "as it is"));
  const access = { server: new URL(url), tls: { insecure: false }, from: "the test" };
  const api = openApi(access, { timeoutMs: 60_000 });
  onTestFinished(async () => {
    api.close();
    await close();
  });
  return { api, asked };
}

describe("delete requests", () => {
  test.each([200, 202, 404])("contain the uid of the object; %i means deleted", async (code) => {
    const { api, asked } = await serve(code);

    await deletePod(api, POD);

    const body = { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "uid-1" } };
    const path = "/api/v1/namespaces/shop/pods/db-0";
    expect(asked).toMatchObject([{ method: "DELETE", path, contentType: "application/json", body }]);
  });

  test.each([
    [409, "conflict"],
    [403, "forbidden"],
    [500, "busy"],
  ])("%i means refused, and is not retried", async (code, kind) => {
    const { api, asked } = await serve(code);

    await expect(deletePod(api, POD)).rejects.toMatchObject({ kind, message: expect.stringMatching("as it is") });

    expect(asked).toHaveLength(1);
  });
});
