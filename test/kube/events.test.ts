import { afterAll, afterEach, describe, expect, test } from "vitest";
import { podState } from "../../src/kube/objects.ts";
import { makeRig, NAMESPACES, NODE, PODS } from "./rig.ts";
import { listOf, podObject, type Reply, statusOf } from "./stub-server.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const EVENTS = "/api/v1/events";
const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";
const waits = podObject({ name: "web-1", uid: "1", phase: "Pending" });
const pods = { [PODS]: (): Reply => ({ body: listOf([waits]) }) };

function event(parts: object = {}) {
  const involvedObject = { kind: "Pod", namespace: "default", name: "web-1" };
  return { involvedObject, type: "Warning", reason: "FailedKillPod", message: "cannot", count: 2, ...parts };
}

describe("events", () => {
  test("of this node's pods are read, the last of each kind", async () => {
    const elsewhere = event({ involvedObject: { namespace: "default", name: "web-9" } });
    const events = [event(), event({ message: "still cannot", count: 7 }), elsewhere, event({ reason: "Odd" })];
    const stub = await rig.serve({ ...pods, [EVENTS]: () => ({ body: listOf(events, "more") }) });

    const facts = await rig.askFacts();

    expect(facts.events).toEqual([
      { namespace: "default", pod: "web-1", reason: "FailedKillPod", message: "still cannot", count: 7 },
    ]);
    const [asked, ...more] = stub.asked.filter(({ path }) => path === EVENTS);
    expect(more).toEqual([]);
    expect(asked?.query.get("fieldSelector")).toContain("type!=Normal");
    expect(Number(asked?.query.get("limit"))).toBeLessThanOrEqual(500);
  });

  test("that are forbidden are not a gap, because nothing depends on them", async () => {
    await rig.serve({ ...pods, [EVENTS]: () => statusOf(403, "forbidden") });

    const facts = await rig.askFacts();

    expect([facts.events, facts.gaps]).toEqual([undefined, []]);
  });
});

describe("requests", () => {
  test.each<readonly [string, boolean, string, readonly string[]]>([
    ["nothing is wrong", false, "Running", [NODE, PODS, ATTACHMENTS]],
    ["something is dead", true, "Running", [NAMESPACES, NODE, PODS, ATTACHMENTS]],
    ["a pod waits", false, "Pending", [EVENTS, NAMESPACES, NODE, PODS, ATTACHMENTS]],
  ])("when %s", async (_what, hasDeadSandboxes, phase, wanted) => {
    const list = listOf([podObject({ name: "web-1", uid: "1", phase })]);
    const stub = await rig.serve({ [PODS]: () => ({ body: list }), [EVENTS]: () => ({ body: listOf([]) }) });

    await rig.askFacts({ hasDeadSandboxes });

    expect(stub.asked.map(({ path }) => path).toSorted()).toEqual(wanted);
  });
});

describe("storage role of a pod", () => {
  const hostPath = (path: string) => ({ name: "v", hostPath: { path } });
  const DIR = "/var/lib/kubelet/plugins/d.example";
  const registry = "/var/lib/kubelet/plugins_registry/";

  test.each<readonly [string, readonly string[], readonly string[], object | undefined]>([
    ["a node plugin by its registry", [`${DIR}/`, registry], ["driver"], { dirs: [DIR], registers: true }],
    ["a node plugin by its registrar", [DIR], ["driver", "node-driver-registrar"], { dirs: [DIR], registers: true }],
    ["a sidecar of the driver", [DIR], ["csi-attacher"], { dirs: [DIR], registers: false }],
    ["kubelet's own directory", ["/var/lib/kubelet/plugins/kubernetes.io"], ["c"], undefined],
    ["a device plugin", [registry], ["c"], undefined],
    ["an ordinary pod", [], ["c"], undefined],
  ])("%s", (_what, paths, names, csi) => {
    const pod = podObject({ name: "p", uid: "1" });
    const spec = { nodeName: "n1", volumes: paths.map(hostPath), containers: names.map((name) => ({ name })) };

    expect(podState({ ...pod, spec, status: {} }).csi).toEqual(csi);
  });

  test("returns its controller and why it waits", () => {
    const pod = podObject({ name: "p", uid: "1" });
    const ownerReferences = [{ kind: "Node" }, { kind: "ReplicaSet", controller: true }];
    const containerStatuses = [
      { restartCount: 3, state: { waiting: { reason: "CrashLoopBackOff" } } },
      { restartCount: 4, state: {} },
    ];

    expect(podState({ ...pod, metadata: { ...pod.metadata, ownerReferences }, status: { containerStatuses } })).toEqual(
      { controller: "ReplicaSet", waiting: ["CrashLoopBackOff"] },
    );
  });
});
