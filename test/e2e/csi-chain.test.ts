import { rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import {
  CRASHING_SIDECAR,
  CSI_DRIVER,
  CSI_PLUGIN,
  CSI_PLUGIN_OBJECT,
  CSI_SOCKET,
  serveCsiSocket,
} from "../../lab/csi-driver.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, type PodSpec, podRef, runPod } from "../../lab/pods.ts";
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
import type { PodRef } from "../../src/snapshot/ids.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { healBeside, untilStopped } from "./as-kubelet.ts";
import { expectAlive, heal, unghostIn } from "./healed-node.ts";
import { runKubelet } from "./scanned-node.ts";
import { reportOf } from "./unghost.ts";

const WITH_API = ["--kubeconfig", STUB_KUBECONFIG, "--min-age", "0s"] as const;
const IGNORED = { annotations: { "unghost.dev/ignore": "true" } };

describe.skipIf(NO_REAL_NODE !== undefined)("one ghost on a CSI node plugin", { timeout: HANG_GUARD_MS }, () => {
  test("is told as one story, healed in order, and only the right pods are restarted", async () => {
    const node = await start();
    const { ghost, sidecar, others, workload } = await brokenStorage(node);

    const scanned = reportOf(await unghostIn(node, ["scan", "-o", "json", "--timeout", "30s", ...WITH_API]));
    expect(scanned.findings.map(({ id }) => id)).toEqual([`libcni-result-cache-corrupt/${ghost.sandboxId}`]);
    const [story] = scanned.findings;
    expect(story?.summary).toContain(
      `the CSI node plugin of ${CSI_DRIVER} cannot start, nobody listens on ${CSI_SOCKET}`,
    );
    expect(story?.evidence).toContainEqual({ source: "csi", fact: `${CSI_SOCKET} is there, and nobody listens on it` });
    expect(story?.blocks).toEqual(
      expect.arrayContaining([
        `CSI driver ${CSI_DRIVER}: its node plugin default/${CSI_PLUGIN.name} cannot start`,
        `pod default/${sidecar.name}: crash-loops for want of the driver's socket`,
        `pod default/${workload.name}: waits for a volume of the driver`,
      ]),
    );
    await askedOfApi(node);

    const [{ report }, back] = await healBeside(node, WITH_API, asKubelet(node, ghost));

    expect(report.actions?.map(({ finding, outcome, reason }) => [finding, outcome, reason])).toEqual([
      [story?.id, "healed", undefined],
    ]);
    expect((await askedOfApi(node)).filter((request) => request.startsWith("DELETE"))).toEqual([
      `DELETE ${podAddress(sidecar)}`,
    ]);
    for (const pod of others) expect(isInApi(node, podAddress(pod))).toBe(true);
    await expectAlive(node, { ready: [back], kept: [ghost] });
    const history = await unghostIn(node, ["history"]);
    expect(history.stdout).toContain("kick-pod");
    const second = await heal(node, WITH_API);
    expect([second.code, second.report.actions]).toEqual([0, []]);
  });

  test("--no-kick leaves the crashing pods to their back-off", async () => {
    const node = await start();
    const { ghost, sidecar } = await brokenStorage(node);

    await healBeside(node, [...WITH_API, "--no-kick"], asKubelet(node, ghost));

    expect(isInApi(node, podAddress(sidecar))).toBe(true);
  });
});

interface Broken {
  readonly ghost: LabPod;
  /** Crashes for want of the socket, and has a controller. */
  readonly sidecar: PodRef;
  /** Whom nobody may delete. */
  readonly others: readonly PodRef[];
  readonly workload: PodRef;
}

/** A power cut under a CSI node plugin, and what follows from it in the cluster. */
async function brokenStorage(node: LabNode): Promise<Broken> {
  const ghost = await runPod(node, CSI_PLUGIN);
  await serveCsiSocket(node);
  await node.powerCut();
  await emptyResultCache(node, ghost);
  await node.powerOn();
  await runKubelet(node);
  await startStubApi(node);
  const known = async (spec: PodSpec, parts: PodObjectParts): Promise<PodRef> => {
    const ref = podRef(spec);
    await apiKnows(node, ref, parts);
    return ref;
  };
  await apiKnows(node, ghost.ref, CSI_PLUGIN_OBJECT);
  const sidecar = await known({ name: "lab-csi-attacher-5d9" }, CRASHING_SIDECAR);
  const { metadata, spec, status } = CRASHING_SIDECAR;
  const elsewhere = { ...spec, nodeName: "another-node" };
  const workload = await known({ name: "database-0" }, { status: { phase: "Pending" } });
  const others = [
    await known({ name: "bare" }, { spec: spec ?? {}, status: status ?? {} }),
    await known({ name: "ignored" }, { ...CRASHING_SIDECAR, metadata: { ...metadata, ...IGNORED } }),
    await known({ name: "elsewhere" }, { ...CRASHING_SIDECAR, spec: elsewhere }),
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

/** Kubelet's part: it stops the ghost as soon as that works, and starts the plugin anew, which listens again. */
async function asKubelet(node: LabNode, { ref, sandboxId }: LabPod): Promise<LabPod> {
  await untilStopped(node, sandboxId);
  const containers = CSI_PLUGIN.containers.map((container) => ({ ...container, attempt: 1 }));
  const pod = await runPod(node, { ...ref, attempt: ref.attempt + 1, containers });
  await rm(node.livePath("/run/lab-csi.ready"), { force: true });
  await serveCsiSocket(node);
  return pod;
}
