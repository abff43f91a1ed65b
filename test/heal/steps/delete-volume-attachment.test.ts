import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import type { Finding } from "../../../src/evidence/finding.ts";
import { DEFAULT_WAITS } from "../../../src/heal/execution/waits.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { deleteVolumeAttachment } from "../../../src/heal/steps/delete-volume-attachment.ts";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/kube-error.ts";
import { attachmentObject, HANDLE, VOLUME, volumeObject } from "../../kube/volume-objects.ts";
import { type HealFixture, makeHealFixture } from "../heal-fixture.ts";
import { type ClusterParts, cluster, KUBELET, machine, usedBy } from "./attachment-cluster.ts";

const STEP = { kind: "delete-volume-attachment", name: "csi-1", uid: "uid-1", node: "n1", volume: VOLUME } as const;
const FINDING: Finding = {
  id: "volume-attachment-stuck/csi-1",
  class: "volume-attachment-stuck",
  severity: "critical",
  subject: { type: "volume-attachment", name: "csi-1" },
  summary: "",
  evidence: [],
  blocks: [],
  treatment: { automatic: false, reversible: false, steps: [] },
  cure: [STEP],
};
const HASH = createHash("sha256").update(HANDLE).digest("hex");

let fixture: HealFixture | undefined;
afterEach(async () => {
  await fixture?.remove();
});

interface Circumstances {
  readonly mounts?: readonly string[];
  /** The pause at which the run is stopped. */
  readonly stopAtPause?: number;
}

async function take(api: Api | undefined, { mounts = ["/", "/proc"], stopAtPause }: Circumstances = {}) {
  fixture = await makeHealFixture();
  const pauses: number[] = [];
  const stop = new AbortController();
  const tools = {
    journal: fixture.journal,
    hostRoot: machine(mounts),
    cri: {
      path: "/run/containerd/containerd.sock",
      listContainers: () => Promise.resolve([]),
      containerStatus: () => Promise.reject(new Error("no container has a status")),
    },
    waits: DEFAULT_WAITS,
    sleep: (milliseconds: number) => {
      pauses.push(milliseconds);
      if (pauses.length === stopAtPause) stop.abort();
      return Promise.resolve();
    },
    interruption: { stop: stop.signal },
    ...(api !== undefined && { cluster: () => Promise.resolve(api) }),
  };
  const result = await deleteVolumeAttachment(STEP, FINDING, tools);
  await fixture.journal.close();
  // The first pause is between two reads of the attacher's lease.
  const waitedMs = pauses.slice(1).reduce((sum, one) => sum + one, 0);
  return { result, waitedMs, history: (await readHistory(fixture.stateDir.journal)).records };
}

describe("delete-volume-attachment", () => {
  test("deletes exactly this version of the object, after the journal has a copy", async () => {
    const api = cluster();

    const { result, history } = await take(api);

    expect(result).toMatchObject({ kind: "done", journalId: history[0]?.id });
    expect(api.deleted).toEqual([
      "/apis/storage.k8s.io/v1/volumeattachments/csi-1",
      expect.objectContaining({ preconditions: { uid: "uid-1", resourceVersion: "71" } }),
    ]);
    expect(history).toMatchObject([
      { state: "done", outcome: "healed", action: { ...STEP_IN_JOURNAL, object: attachmentObject({}) } },
    ]);
  });

  test("heals when the attachment that the cluster creates instead is attached", async () => {
    const { result, waitedMs } = await take(cluster({ afterDelete: "attached" }));
    expect([result, waitedMs]).toMatchObject([{ kind: "done", detail: expect.stringMatching(/^csi-1 .*attached/) }, 0]);
  });

  test("heals when no pod of this node waits for the volume and no new attachment is created", async () => {
    const { result, waitedMs } = await take(cluster({ afterDelete: "gone", pods: [] }));
    expect([result, waitedMs]).toMatchObject([{ kind: "done", detail: expect.stringContaining("no pod") }, 5000]);
  });

  test.each<readonly [string, ClusterParts, string, string, number]>([
    ["the attacher's retry fails", { afterDelete: "fails" }, "attach-fails-again", "storage does not answer", 0],
    [
      "the attacher's retry fails, with no pod waiting",
      { afterDelete: "fails", pods: [] },
      "attach-fails-again",
      "csi-1",
      0,
    ],
    ["the attacher reports nothing", { afterDelete: "pending" }, "not-attached-again", "60 s", 60_000],
    ["no new attachment is created", { afterDelete: "gone" }, "not-made-again", "default/db-0", 130_000],
    [
      "two pods wait for it",
      { afterDelete: "gone", pods: [usedBy("n1"), usedBy("n1", "Pending", "data", "db-1")] },
      "not-made-again",
      "default/db-0, default/db-1",
      130_000,
    ],
    ["only other attachments are attached", { afterDelete: "others" }, "not-made-again", "130 s", 130_000],
    [
      "the object stays",
      { afterDelete: "stays" },
      "attachment-still-there",
      "external-attacher/driver-example",
      60_000,
    ],
  ])("does not heal when %s", async (_, parts, code, words, waited) => {
    const { result, history, waitedMs } = await take(cluster(parts));

    expect(result).toMatchObject({ kind: "failed", code, reason: expect.stringContaining(words) });
    expect(history).toMatchObject([{ state: "done", outcome: "failed" }]);
    expect(waitedMs).toBe(waited);
  });

  test.each<readonly [string, ClusterParts, string]>([
    ["waits for the deletion", { afterDelete: "stays" }, "attachment-still-there"],
    ["waits for the attacher", { afterDelete: "pending" }, "interrupted"],
  ])("ends at once when the run is stopping while it %s", async (_, parts, code) => {
    const { result, waitedMs } = await take(cluster(parts), { stopAtPause: 2 });
    expect([result, waitedMs]).toMatchObject([{ kind: "failed", code, reason: expect.stringMatching(/\w/) }, 1000]);
  });

  test.each<readonly [string, ClusterParts]>([
    ["it is gone already", { attachments: [] }],
    ["it was created again meanwhile", { attachments: [attachmentObject({ uid: "uid-2" })], lease: "none" }],
    ["it goes while the attacher is watched", { afterWatch: [] }],
    ["it is created again while the attacher is watched", { afterWatch: [attachmentObject({ uid: "uid-2" })] }],
  ])("needs nothing when %s", async (_, parts) => {
    const api = cluster(parts);

    const { result, history } = await take(api);

    expect([result, api.deleted, history, api.closed]).toEqual([{ kind: "unneeded" }, [], [], 1]);
  });

  test.each<readonly [string, ClusterParts, RegExp]>([
    ["its attacher has no lease", { lease: "none" }, /is unknown: it holds no lease/],
    ["it is attached by now", { attachments: [attachmentObject({ status: { attached: true } })] }, /attached by now/],
    ["it belongs to another node", { attachments: [attachmentObject({ node: "n2" })] }, /another node or volume/],
    [
      "another component has a finalizer on it",
      { attachments: [attachmentObject({ finalizers: ["external-attacher/driver-example", "example.com/keep"] })] },
      /example\.com\/keep holds it/,
    ],
    [
      "it is already being deleted",
      { attachments: [attachmentObject({ deletionTimestamp: "2026-11-15T03:25:00Z" })] },
      /asked for before, and waits for external-attacher/,
    ],
    [
      "the volume is attached elsewhere",
      {
        attachments: [
          attachmentObject({}),
          attachmentObject({ name: "csi-2", node: "n2", status: { attached: true } }),
        ],
      },
      /attached to n2/,
    ],
    ["a pod on another node uses it", { pods: [usedBy("n2", "Running")] }, /default\/db-0 uses the volume on n2/],
    ["its owner is unknown", { volume: { metadata: { name: VOLUME }, spec: {} } }, /has no CSI volume/],
    [
      "a pod of this node uses another PersistentVolume of the same storage",
      {
        twins: [{ ...volumeObject({ namespace: "default", name: "twin" }), metadata: { name: "pv-twin" } }],
        pods: [usedBy("n1", "Running", "twin")],
      },
      /default\/db-0 on this node uses the volume/,
    ],
    ["a pod of this node still uses it", { pods: [usedBy("n1", "Running")] }, /has not finished/],
    ["the proof could not be read", { volume: {} }, /its proof is incomplete/],
    ["it changes at the last moment", { onDelete: new KubeError("conflict", "changed") }, /changed during/],
  ])("refuses when %s", async (_, parts, reason) => {
    const api = cluster(parts);

    const { result, history } = await take(api);

    expect(result).toMatchObject({ kind: "refused", reason: expect.stringMatching(reason) });
    expect([api.deleted, api.closed]).toEqual([[], 1]);
    // Only a change at the last moment was journaled before.
    expect(history).toMatchObject(parts.onDelete === undefined ? [] : [{ outcome: "refused" }]);
  });

  test("refuses when a pod starts to use the volume after the first proof", async () => {
    const api = cluster({ podsAfterProof: [usedBy("n2", "Running")] });

    const { result, history } = await take(api);

    expect([result, api.deleted]).toMatchObject([{ kind: "refused", code: "pod-elsewhere-uses-volume" }, []]);
    expect(history).toMatchObject([{ outcome: "refused" }]);
  });

  test.each([
    [64 * 1024, "done"],
    [64 * 1024 + 1, "refused"],
  ])("an object of %i characters, which the journal has to keep completely, is %s", async (length, kind) => {
    const plain = attachmentObject({});
    const padding = "x".repeat(length - JSON.stringify({ ...plain, padding: "" }).length);
    const api = cluster({ attachments: [{ ...plain, padding } as never] });

    const { result } = await take(api);

    expect(result).toMatchObject({ kind, ...(kind === "refused" && { code: "object-too-large" }) });
    expect(api.deleted.length > 0).toBe(kind === "done");
  });

  test.each<readonly [string, () => Api]>([
    ["during the proof", () => ({ ...cluster(), get: () => Promise.reject(new TypeError("a mistake")) })],
    ["during the deletion", () => cluster({ onDelete: new TypeError("a mistake") })],
  ])("rethrows an internal error %s", async (_, api) => {
    await expect(take(api())).rejects.toThrow("a mistake");
  });

  test.each([
    ["in a pod", `${KUBELET}/pods/u1/volumes/kubernetes.io~csi/${VOLUME}/mount`],
    ["by an older kubelet version", `${KUBELET}/plugins/kubernetes.io/csi/pv/${VOLUME}/globalmount`],
    ["by its handle's hash, under another root", `/opt/kubelet/plugins/kubernetes.io/csi/driver/${HASH}/globalmount`],
    ["as a block device", `${KUBELET}/plugins/kubernetes.io/csi/volumeDevices/${VOLUME}/dev/u1`],
  ])("refuses while the volume is mounted %s", async (_, path) => {
    const api = cluster();

    expect((await take(api, { mounts: ["/", path] })).result).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining(path),
    });
    expect(api.deleted).toEqual([]);
  });

  test.each<readonly [string, readonly object[]]>([
    ["a pod that has finished", [usedBy("n2", "Succeeded")]],
    ["a pod with another claim", [usedBy("n2", "Running", "logs")]],
  ])("%s on another node does not block the deletion", async (_, pods) => {
    expect((await take(cluster({ pods }))).result.kind).toBe("done");
  });

  test("does nothing without an API server", async () => {
    expect((await take(undefined)).result).toMatchObject({ kind: "refused", code: "api-missing" });
  });

  test("reports and journals an error of the deletion itself", async () => {
    const { result, history } = await take(cluster({ onDelete: new KubeError("forbidden", "may not delete") }));

    expect(result).toMatchObject({ kind: "failed", reason: "may not delete" });
    expect(history).toMatchObject([{ state: "done", outcome: "failed" }]);
  });
});

const STEP_IN_JOURNAL = { kind: "delete-volume-attachment", name: "csi-1", uid: "uid-1" } as const;
