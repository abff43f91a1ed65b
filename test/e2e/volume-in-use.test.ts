import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { ATTACHER, runAttacher, type StuckAttachment, stuckAttachment } from "../../lab/faults/stuck-attachment.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, podRef, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { apiForgets, apiHas, apiKnows, objectFile, STUB_KUBECONFIG, startStubApi } from "../../lab/stub-api.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, play, start } from "../lab/real-node.ts";
import { expectAlive, heal } from "./healed-node.ts";

const BY_NAME = ["--kubeconfig", STUB_KUBECONFIG, "--only", "volume-attachment-stuck"] as const;
const HANDLE = "vol-1";

describe.skipIf(NO_REAL_NODE !== undefined)("an attachment whose volume is in use", { timeout: HANG_GUARD_MS }, () => {
  test("stays when a pod uses another PersistentVolume of the same storage", async () => {
    const { node, stuck } = await nodeWithAttachment();
    const busy = await runPod(node, { name: "on-twin", containers: [{ name: "main" }] });
    await twinOf(node, "pvc-twin", "twin");
    await apiKnows(node, busy.ref, claiming("twin"));

    await expectRefused(node, stuck, "pod-uses-volume");

    await apiKnows(node, busy.ref, { ...claiming("twin"), metadata: { deletionTimestamp: "2026-11-15T03:20:00Z" } });
    await expectRefused(node, stuck, "pod-uses-volume");
    await apiKnows(node, busy.ref, {
      ...claiming("twin"),
      status: { phase: "Failed", containerStatuses: [{ state: { running: {} } }] },
    });
    await expectRefused(node, stuck, "pod-uses-volume");
    await expectAlive(node, { ready: [busy], kept: [] });
  });

  test("stays while a container keeps a mount that the node has detached, and is deleted after its end", async () => {
    const { node, stuck } = await nodeWithAttachment();
    const ref = podRef({ name: "writer" });
    const dir = `/var/lib/kubelet/pods/${ref.uid}/volumes/kubernetes.io~csi/${stuck.volume}`;
    const record = `${dir}/vol_data.json`;
    await node.check(["sh", "-c", `mkdir -p ${dir}/mount && mount -t tmpfs lab ${dir}/mount`]);
    await node.writeFile(
      record,
      JSON.stringify({ driverName: ATTACHER, volumeHandle: HANDLE, specVolID: stuck.volume, attachmentID: stuck.name }),
    );
    const mounts = [{ hostPath: `${dir}/mount`, containerPath: "/data" }];
    const command = ["sh", "-c", "while :; do date >>/data/log; sleep 1; done"];
    const writer = await runPod(node, { ...ref, containers: [{ name: "main", command, mounts }] });
    await apiKnows(node, writer.ref, claiming("data"));
    await node.check(["umount", "-l", `${dir}/mount`]);

    // Removes one source after the other, until only the container itself shows the use.
    await expectRefused(node, stuck, "pod-uses-volume");
    await apiForgets(node, writer.ref);
    await expectRefused(node, stuck, "kubelet-has-record");
    await rm(node.path(dir), { recursive: true });
    await expectRefused(node, stuck, "container-mounts-volume");
    await expectAlive(node, { ready: [writer], kept: [] });

    await removePod(node, writer);
    const { report } = await heal(node, BY_NAME);
    expect(report.actions).toMatchObject([{ action: "delete-volume-attachment", outcome: "healed" }]);
    expect(uidInApi(node, stuck)).toBe("second");
  });

  test("stays while a process outside of any pod has it mounted in its own namespace", async () => {
    const { node, stuck } = await nodeWithAttachment();
    const dir = `/opt/former-kubelet/pods/u1/volumes/kubernetes.io~csi/${stuck.volume}/mount`;
    const ready = "/run/lab-mounted";
    const inside = `mkdir -p ${dir} && mount -t tmpfs lab ${dir} && touch ${ready} && exec sleep 1000000000`;
    await node.check(["sh", "-c", `setsid unshare -m sh -c '${inside}' </dev/null >/dev/null 2>&1 &`]);
    await until("the mount is there", HANG_GUARD_MS, () => (existsSync(node.livePath(ready)) ? true : undefined));

    await expectRefused(node, stuck, "mounted");
  });

  test("stays when kubelet's records cannot be read", async () => {
    const { node, stuck } = await nodeWithAttachment();
    await node.writeFile("/var/lib/kubelet/pods/u1/volumes/kubernetes.io~csi/other/vol_data.json", '{"driverName"');

    await expectRefused(node, stuck, "kubelet-records-unread");
  });
});

async function nodeWithAttachment() {
  const node = await start();
  await startStubApi(node);
  const stuck = await stuckAttachment(node, podRef({ name: "db" }));
  play((stop) => runAttacher(node, stuck, stop));
  return { node, stuck };
}

/** Another PersistentVolume with the same driver and handle. */
function twinOf(node: LabNode, name: string, claim: string): Promise<void> {
  return apiHas(node, `/api/v1/persistentvolumes/${name}`, {
    metadata: { name, uid: name },
    spec: { claimRef: { namespace: "default", name: claim }, csi: { driver: ATTACHER, volumeHandle: HANDLE } },
  });
}

function claiming(claimName: string) {
  return { spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] } };
}

async function expectRefused(node: LabNode, stuck: StuckAttachment, code: string): Promise<void> {
  const { code: exit, report } = await heal(node, BY_NAME);
  expect(report.actions).toMatchObject([{ outcome: "refused", code }]);
  expect([exit, uidInApi(node, stuck)]).toEqual([1, "first"]);
}

async function removePod(node: LabNode, { sandboxId }: LabPod): Promise<void> {
  await node.cri.stopPodSandbox(sandboxId, CALL);
  await node.cri.removePodSandbox(sandboxId, CALL);
}

function uidInApi(node: LabNode, { address }: StuckAttachment): string {
  return JSON.parse(readFileSync(objectFile(node, address), "utf8")).metadata.uid;
}
