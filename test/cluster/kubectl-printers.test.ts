import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { runOrThrow } from "../../lab/command.ts";
import { formatOutput, parseOutput } from "../../src/fleet/output.ts";
import { OBJECTS, PRINTED } from "../fleet/kubectl-prints.ts";
import { tempDir } from "../support/temp-dir.ts";
import { HANG_GUARD_MS } from "./lab-cluster.ts";

/** Enough of an API server for `kubectl get nodes`. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  "/api": { kind: "APIVersions", versions: ["v1"] },
  "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [] },
  "/api/v1": {
    kind: "APIResourceList",
    groupVersion: "v1",
    resources: [{ name: "nodes", singularName: "node", namespaced: false, kind: "Node", verbs: ["get", "list"] }],
  },
  "/api/v1/nodes": OBJECTS,
};
const server = createServer(({ url = "" }, response) => {
  const answer = ANSWERS[url.split("?")[0] ?? ""];
  response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
});
/** Of kubectl's cache. */
const home = tempDir();
let kubectl: readonly string[] = [];

beforeAll(async () => {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  kubectl = [join(programs.kubernetesDir, "kubectl"), "--server", `http://127.0.0.1:${port}`, "get", "nodes", "-o"];
}, HANG_GUARD_MS);

afterAll(() => {
  server.close();
  home.remove();
});

test.each(PRINTED)("unghost and kubectl print the same with -o %s", async (given, expected) => {
  const output = parseOutput(given);
  if (output instanceof Error) throw output;
  const names = OBJECTS.items.map(({ metadata }) => `node/${metadata.name}`);

  const { stdout } = await runOrThrow([...kubectl, given], { env: { HOME: home.path } });
  const ours = await formatOutput(output, { document: OBJECTS, names, table: () => [] }, false);

  expect([stdout, ours]).toEqual([expected, expected]);
});
