import { afterEach, describe, expect, test } from "vitest";
import { KubeError } from "../../../src/kube/errors.ts";
import { uninstall } from "../../boot/install/hook-runs.ts";
import { HOSTS, type ScratchHost, scratchHost } from "../../boot/install/scratch-host.ts";
import { type MemoryCluster, memoryCluster } from "../../support/memory-cluster.ts";

const NODE = "/api/v1/nodes/n1";
const READY = { type: "Ready", status: "True" };

let host: ScratchHost;
afterEach(() => host.remove());

function clusterWith(conditions: readonly object[], machineID = "m-1"): MemoryCluster {
  const cluster = memoryCluster();
  cluster.store.put(NODE, { metadata: { name: "n1" }, status: { conditions, nodeInfo: { machineID } } });
  return cluster;
}

function uninstallFrom({ open }: MemoryCluster, options: { readonly dryRun?: boolean } = {}) {
  host = scratchHost({ ...HOSTS["k3s-agent"], "/etc/machine-id": "m-1\n" });
  return uninstall(host, { ...options, ownNode: { openCluster: open, name: "n1", hostRoot: host.root } });
}

describe("uninstall", () => {
  test("removes the agent's condition from the node, and no other", async () => {
    const creation = { type: "SandboxCreation", status: "False" };
    const cluster = clusterWith([READY, { type: "GhostSandboxes", status: "True" }, creation]);

    const { code, stdout } = await uninstallFrom(cluster);

    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining("remove     the conditions GhostSandboxes and SandboxCreation of node n1\n"),
    ]);
    expect(cluster.store.get(NODE)?.["status"]).toMatchObject({ conditions: [READY] });
  });

  test("only prints it in a dry run", async () => {
    const cluster = clusterWith([{ type: "GhostSandboxes", status: "False" }]);

    const { code, stdout } = await uninstallFrom(cluster, { dryRun: true });

    expect([code, stdout]).toEqual([0, "remove     the conditions GhostSandboxes and SandboxCreation of node n1\n"]);
    expect(cluster.requests).toEqual([`GET ${NODE}`]);
  });

  test("skips a node of the same name that is another machine", async () => {
    const cluster = clusterWith([{ type: "GhostSandboxes", status: "True" }], "m-2");

    expect(await uninstallFrom(cluster)).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing to do") });
    expect(cluster.requests).toEqual([`GET ${NODE}`]);
  });

  test.each([
    ["there is no condition", clusterWith([READY])],
    ["the cluster has no such node", memoryCluster()],
  ])("has nothing to do when %s", async (_where, cluster) => {
    expect(await uninstallFrom(cluster)).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing to do") });
  });

  test("reports unknown when the API does not answer", async () => {
    const cluster = memoryCluster();
    cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };

    expect(await uninstallFrom(cluster)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        "left       the conditions GhostSandboxes and SandboxCreation of node n1, if they exist: connection refused",
      ),
    });
  });

  test("prints the manual command when it is forbidden", async () => {
    const cluster = clusterWith([{ type: "GhostSandboxes", status: "True" }]);
    cluster.before = (request) => {
      if (request.startsWith("PATCH")) throw new KubeError("forbidden", "may not patch nodes/status");
    };

    expect(await uninstallFrom(cluster)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("kubectl patch node n1 --subresource=status"),
    });
  });
});
