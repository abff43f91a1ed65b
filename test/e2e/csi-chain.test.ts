import { describe, expect, test } from "vitest";
import { CSI_DRIVER, CSI_PLUGIN, type CsiDriver, csiDriver } from "../../lab/csi-driver.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, type PodSpec, podRef, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import {
  apiHas,
  apiKnows,
  askedOfApi,
  isInApi,
  type PodObjectParts,
  podAddress,
  STUB_KUBECONFIG,
  startStubApi,
} from "../../lab/stub-api.ts";
import type { PodRef } from "../../src/node/types/ids.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { healBeside, untilStopped } from "./as-kubelet.ts";
import { startAgent } from "./clustered-agent.ts";
import { expectAlive, heal, unghostIn } from "./healed-node.ts";
import { runKubelet } from "./scanned-node.ts";
import { reportOf } from "./unghost.ts";

const WITH_API = ["--kubeconfig", STUB_KUBECONFIG, "--min-age", "0s"] as const;
const IGNORED = { annotations: { "unghost.dev/ignore": "true" } };

describe.skipIf(NO_REAL_NODE !== undefined)("one ghost on a CSI node plugin", { timeout: HANG_GUARD_MS }, () => {
  test.each([
    ["in kubelet's default directory", undefined],
    ["in the directory that --root-dir names", "/opt/kubelet-root"],
  ])("is one finding, healed in order, and only the right pods are restarted: %s", async (_, kubeletRoot) => {
    const node = await start();
    const driver = csiDriver(kubeletRoot);
    const { ghost, sidecar, others, workload } = await brokenStorage(node, driver, kubeletRoot);

    const scanned = reportOf(await unghostIn(node, ["scan", "-o", "json", "--timeout", "30s", ...WITH_API]));
    expect(scanned.findings.map(({ id }) => id)).toEqual([`libcni-result-cache-corrupt/${ghost.sandboxId}`]);
    const [story] = scanned.findings;
    const { socket } = driver;
    expect(story?.summary).toContain(
      `the CSI node plugin of ${CSI_DRIVER} cannot start, no process listens on ${socket}`,
    );
    expect(story?.evidence).toContainEqual({ source: "csi", fact: `${socket} exists, and no process listens on it` });
    expect(story?.blocks).toEqual(
      expect.arrayContaining([
        `CSI driver ${CSI_DRIVER}: its node plugin default/${CSI_PLUGIN.name} cannot start`,
        `pod default/${sidecar.name}: crash-loops without the driver's socket`,
        `pod default/${workload.name}: waits for a volume of the driver`,
      ]),
    );
    await askedOfApi(node);

    const [{ report }, back] = await healBeside(node, WITH_API, asKubelet(node, ghost, driver));

    expect(report.actions?.map(({ finding, outcome, reason }) => [finding, outcome, reason])).toEqual([
      [story?.id, "healed", undefined],
    ]);
    expect((await askedOfApi(node)).filter((request) => request.startsWith("DELETE"))).toEqual([
      `DELETE ${podAddress(sidecar)}`,
    ]);
    for (const pod of others) expect(isInApi(node, podAddress(pod))).toBe(true);
    await expectAlive(node, { ready: [back], kept: [ghost] });
    const history = await unghostIn(node, ["history", "-v"]);
    expect(history.stdout).toContain("kick-pod");
    const second = await heal(node, WITH_API);
    expect([second.code, second.report.actions]).toEqual([0, []]);
  });

  test("--no-kick leaves the crashing pods to their back-off", async () => {
    const node = await start();
    const driver = csiDriver();
    const { ghost, sidecar } = await brokenStorage(node, driver);

    await healBeside(node, [...WITH_API, "--no-kick"], asKubelet(node, ghost, driver));

    expect(isInApi(node, podAddress(sidecar))).toBe(true);
  });

  test("the agent restarts the pods that crashed because of it, once the socket is served, also those that the API shows as running", async () => {
    const node = await start();
    const driver = csiDriver();
    const { ghost, sidecar, others } = await brokenStorage(node, driver);
    const stale = podRef({ name: "stale" });
    await runPod(node, { ...stale, containers: [{ name: "main", command: ["sh", "-c", "exit 1"] }] });
    // Kubelet's report before the power cut.
    const running = { phase: "Running", containerStatuses: [{ name: "main", state: { running: {} } }] };
    await apiKnows(node, stale, { ...driver.sidecar, status: running });

    await startAgent(node, "heal");
    await asKubelet(node, ghost, driver);

    for (const pod of [sidecar, stale])
      await until(`${pod.name} is deleted`, HANG_GUARD_MS, () => (isInApi(node, podAddress(pod)) ? undefined : true));
    for (const pod of others) expect(isInApi(node, podAddress(pod))).toBe(true);
  });
});

interface Broken {
  readonly ghost: LabPod;
  /** Crashes without the socket, and has a controller. */
  readonly sidecar: PodRef;
  /** Pods that must not be deleted. */
  readonly others: readonly PodRef[];
  readonly workload: PodRef;
}

/** A power cut with a CSI node plugin, and its consequences in the cluster. */
async function brokenStorage(node: LabNode, driver: CsiDriver, kubeletRoot?: string): Promise<Broken> {
  const ghost = await runPod(node, CSI_PLUGIN);
  await driver.serve(node);
  await node.powerCut();
  await emptyResultCache(node, ghost);
  await node.powerOn();
  await runKubelet(node, kubeletRoot === undefined ? [] : [`--root-dir=${kubeletRoot}`]);
  await startStubApi(node);
  const known = async (spec: PodSpec, parts: PodObjectParts): Promise<PodRef> => {
    const ref = podRef(spec);
    await apiKnows(node, ref, parts);
    return ref;
  };
  await apiKnows(node, ghost.ref, driver.plugin);
  const sidecar = await known({ name: "lab-csi-attacher-5d9" }, driver.sidecar);
  const { metadata, spec, status } = driver.sidecar;
  const elsewhere = { ...spec, nodeName: "another-node" };
  const workload = await known({ name: "database-0" }, { status: { phase: "Pending" } });
  const others = [
    await known({ name: "bare" }, { spec: spec ?? {}, status: status ?? {} }),
    await known({ name: "ignored" }, { ...driver.sidecar, metadata: { ...metadata, ...IGNORED } }),
    await known({ name: "elsewhere" }, { ...driver.sidecar, spec: elsewhere }),
    await known({ name: "its-own-fault" }, { metadata: metadata ?? {}, status: status ?? {} }),
    workload,
  ];
  await apiHas(node, "/api/v1/namespaces/default/events/database-0.1", {
    metadata: { name: "database-0.1", namespace: "default" },
    involvedObject: { kind: "Pod", namespace: "default", name: workload.name, uid: workload.uid },
    type: "Warning",
    reason: "FailedMount",
    message: `MountVolume.MountDevice failed: driver name ${CSI_DRIVER} not found in the list of registered CSI drivers`,
    count: 7,
  });
  return { ghost, sidecar, others, workload };
}

/** Kubelet's part: it stops the ghost as soon as that works, and starts the plugin again, which listens again. */
async function asKubelet(node: LabNode, { ref, sandboxId }: LabPod, driver: CsiDriver): Promise<LabPod> {
  await untilStopped(node, sandboxId);
  const containers = CSI_PLUGIN.containers.map((container) => ({ ...container, attempt: 1 }));
  const pod = await runPod(node, { ...ref, attempt: ref.attempt + 1, containers });
  await driver.serve(node);
  return pod;
}
