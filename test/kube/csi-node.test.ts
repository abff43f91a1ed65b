import { afterAll, afterEach, describe, expect, test } from "vitest";
import { makeRig, PODS } from "./rig.ts";
import { listOf, podObject, type Reply, statusOf } from "./stub-server.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const CSI_NODE = "/apis/storage.k8s.io/v1/csinodes/n1";
const SOCKET_DIR = "/var/lib/kubelet/plugins/d.example";
const REGISTRY = "/var/lib/kubelet/plugins_registry";

function pod(name: string, controller: string, paths: readonly string[]) {
  const object = podObject({ name, uid: name });
  const volumes = paths.map((path, index) => ({ name: `v${index}`, hostPath: { path } }));
  const ownerReferences = [{ kind: controller, name: "owner", controller: true }];
  return { ...object, metadata: { ...object.metadata, ownerReferences }, spec: { ...object.spec, volumes } };
}

async function plugins(pods: readonly unknown[], drivers: Reply, hasDeadSandboxes = true) {
  const { asked } = await rig.serve({ [PODS]: () => ({ body: listOf(pods) }), [CSI_NODE]: () => drivers });
  const facts = await rig.askFacts({ hasDeadSandboxes });
  return {
    plugins: facts.pods.filter(({ csi }) => csi?.registers === true).map(({ name }) => name),
    gaps: facts.gaps,
    wasAsked: asked.some(({ path }) => path === CSI_NODE),
  };
}

function csiNode(...drivers: readonly string[]): Reply {
  return { body: { metadata: { name: "n1" }, spec: { drivers: drivers.map((name) => ({ name, nodeID: "n1" })) } } };
}

describe("a CSI node plugin that is not identified by its mounts", () => {
  const unclear = pod("unclear", "DaemonSet", [SOCKET_DIR, "/var/lib/kubelet"]);
  const sidecar = pod("sidecar", "ReplicaSet", [SOCKET_DIR]);

  test("is identified by its driver in the node's CSINode", async () => {
    expect(await plugins([unclear, sidecar], csiNode("d.example"))).toMatchObject({ plugins: ["unclear"], gaps: [] });
  });

  test.each<readonly [string, Reply]>([
    ["has other drivers", csiNode("other.example")],
    ["has no drivers yet", { body: { metadata: { name: "n1" }, spec: { drivers: null } } }],
    ["does not exist", statusOf(404, "not found")],
    ["is forbidden", statusOf(403, "no")],
  ])("stays unknown when the CSINode %s", async (_what, drivers) => {
    expect(await plugins([unclear], drivers)).toEqual({ plugins: [], gaps: [], wasAsked: true });
  });

  test("is not identified by another plugin's driver: the pod that registers it is its plugin", async () => {
    const plugin = pod("plugin", "DaemonSet", [SOCKET_DIR, REGISTRY]);

    expect(await plugins([plugin, unclear], csiNode("d.example"))).toMatchObject({
      plugins: ["plugin"],
      wasAsked: false,
    });
  });

  test("does not cause a request while nothing is dead", async () => {
    expect(await plugins([unclear], csiNode("d.example"), false)).toMatchObject({ plugins: [], wasAsked: false });
  });
});
