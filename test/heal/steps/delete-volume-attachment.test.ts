import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { Finding } from "../../../src/evidence/finding.ts";
import { DEFAULT_WAITS } from "../../../src/heal/execution/waits.ts";
import { readHistory } from "../../../src/heal/journal/history.ts";
import { deleteVolumeAttachment } from "../../../src/heal/steps/delete-volume-attachment.ts";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/kube-error.ts";
import { fakeApi } from "../../kube/fake-api.ts";
import { listOf, podObject } from "../../kube/stub-server.ts";
import { attachmentObject, HANDLE, leaseObject, VOLUME, volumeObject } from "../../kube/volume-objects.ts";
import { fill, tempDir } from "../../snapshot/temp-dir.ts";
import { makeWorkshop, type Workshop } from "../workshop.ts";

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
const KUBELET = "/var/lib/kubelet";

interface ClusterParts {
  readonly attachments?: readonly ReturnType<typeof attachmentObject>[];
  readonly volume?: object;
  readonly twins?: readonly object[];
  readonly pods?: readonly object[];
  readonly lease?: "renewed" | "still" | "none";
  /** What becomes of it when its deletion is accepted. */
  readonly afterDelete?: "gone" | "attached" | "fails" | "pending" | "stays" | "others";
  readonly onDelete?: Error;
  /** What the attachments are once the attacher was watched. */
  readonly afterWatch?: readonly ReturnType<typeof attachmentObject>[];
  /** What the pods are at the second proof, when the deletion is announced. */
  readonly podsAfterProof?: readonly object[];
}

interface FakeCluster extends Api {
  readonly deleted: readonly unknown[];
  /** How often the API was closed. */
  closed: number;
}

const STATUS = {
  attached: { attached: true },
  fails: { attached: false, attachError: { message: "the storage does not answer" } },
  pending: { attached: false },
} as const;

/** A cluster of a few objects that behave as the API server and the attacher would. */
function cluster(parts: ClusterParts = {}): FakeCluster {
  const {
    volume = volumeObject(),
    pods = [usedBy("n1")],
    lease = "renewed",
    afterDelete = "attached",
    onDelete,
  } = parts;
  let attachments = parts.attachments ?? [attachmentObject({})];
  let reads = 0;
  let podLists = 0;
  const deleted: unknown[] = [];
  const leases = (): readonly unknown[] => {
    if (lease === "none") return [];
    reads += lease === "renewed" ? 1 : 0;
    if (reads === 2) attachments = parts.afterWatch ?? attachments;
    return [leaseObject(new Date(Date.UTC(2026, 10, 15, 3, 30, reads)).toISOString())];
  };
  const api = fakeApi({
    get: (path) => {
      const [plain = ""] = path.split("?");
      const name = plain.split("/").at(-1) ?? "";
      if (plain.endsWith("/leases")) return Promise.resolve(listOf(leases()));
      if (plain.endsWith("/volumeattachments")) return Promise.resolve(listOf(attachments));
      if (plain.endsWith("/pods")) {
        podLists += 1;
        return Promise.resolve(listOf((podLists > 1 ? parts.podsAfterProof : undefined) ?? pods));
      }
      if (plain.endsWith("/persistentvolumes")) return Promise.resolve(listOf([volume, ...(parts.twins ?? [])]));
      if (plain.includes("/nodes/")) return Promise.resolve({ metadata: { name } });
      const object = attachments.find((one) => one.metadata.name === name);
      return object === undefined
        ? Promise.reject(new KubeError("not-found", `${plain} is not there`))
        : Promise.resolve(object);
    },
    delete: (path, options) => {
      if (onDelete !== undefined) return Promise.reject(onDelete);
      deleted.push(path, options);
      attachments = attachmentsAfter(afterDelete, attachments);
      return Promise.resolve({});
    },
  });
  const fake: FakeCluster = {
    ...api,
    deleted,
    closed: 0,
    close: () => {
      fake.closed += 1;
    },
  };
  return fake;
}

type Attachments = readonly ReturnType<typeof attachmentObject>[];

function attachmentsAfter(deletion: NonNullable<ClusterParts["afterDelete"]>, before: Attachments): Attachments {
  switch (deletion) {
    case "gone":
      return [];
    case "stays":
      return before;
    case "others":
      return [
        attachmentObject({ name: "csi-2", uid: "uid-2", node: "n2", status: STATUS.attached }),
        attachmentObject({ name: "csi-3", uid: "uid-3", volume: "pv-other", status: STATUS.attached }),
      ];
    default:
      return [attachmentObject({ uid: "uid-2", status: STATUS[deletion] })];
  }
}

function usedBy(node: string, phase = "Pending", claimName = "data", name = "db-0"): object {
  const pod = podObject({ name, uid: `uid-of-${name}`, node, phase });
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] } };
}

let workshop: Workshop | undefined;
afterEach(async () => {
  await workshop?.remove();
});

/** A machine with one process, and a kubelet's directory. */
function machine(mounts: readonly string[]): string {
  const lines = mounts.map((path, index) => `${index} 1 8:1 / ${path} rw - ext4 /dev/sda1 rw\n`);
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/stat": "1 (init) S 0 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 0 9\n",
    "proc/1/mountinfo": lines.join(""),
    "proc/1/ns/.keep": "",
  });
  symlinkSync("mnt:[1]", `${root}/proc/1/ns/mnt`);
  mkdirSync(`${root}${KUBELET}/pods`, { recursive: true });
  return root;
}

interface Circumstances {
  readonly mounts?: readonly string[];
  /** At which pause the run is asked to end. */
  readonly stopAtPause?: number;
}

async function take(api: Api | undefined, { mounts = ["/", "/proc"], stopAtPause }: Circumstances = {}) {
  workshop = await makeWorkshop();
  const pauses: number[] = [];
  const stop = new AbortController();
  const tools = {
    journal: workshop.journal,
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
  await workshop.journal.close();
  // The first pause lies between two reads of the attacher's lease.
  const waitedMs = pauses.slice(1).reduce((sum, one) => sum + one, 0);
  return { result, waitedMs, history: (await readHistory(workshop.stateDir.journal)).records };
}

describe("deleting a VolumeAttachment", () => {
  test("this very version of it, after the journal has a copy", async () => {
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

  test("is done when the attachment that the cluster makes in its place gets attached", async () => {
    const { result, waitedMs } = await take(cluster({ afterDelete: "attached" }));
    expect([result, waitedMs]).toMatchObject([{ kind: "done", detail: expect.stringMatching(/^csi-1 .*attached/) }, 0]);
  });

  test("is done when no pod here waits for the volume and nothing asks for it again", async () => {
    const { result, waitedMs } = await take(cluster({ afterDelete: "gone", pods: [] }));
    expect([result, waitedMs]).toMatchObject([{ kind: "done", detail: expect.stringContaining("no pod") }, 5000]);
  });

  test.each<readonly [string, ClusterParts, string, string, number]>([
    ["the attacher's next try fails", { afterDelete: "fails" }, "attach-fails-again", "storage does not answer", 0],
    [
      "the attacher's next try fails, with no pod waiting",
      { afterDelete: "fails", pods: [] },
      "attach-fails-again",
      "csi-1",
      0,
    ],
    ["the attacher does not say", { afterDelete: "pending" }, "not-attached-again", "60 s", 60_000],
    ["the cluster does not ask for it again", { afterDelete: "gone" }, "not-made-again", "default/db-0", 130_000],
    [
      "two pods wait for it",
      { afterDelete: "gone", pods: [usedBy("n1"), usedBy("n1", "Pending", "data", "db-1")] },
      "not-made-again",
      "default/db-0, default/db-1",
      130_000,
    ],
    ["only others are attached", { afterDelete: "others" }, "not-made-again", "130 s", 130_000],
    ["it stays", { afterDelete: "stays" }, "attachment-still-there", "external-attacher/driver-example", 60_000],
  ])("has healed nothing where %s", async (_, parts, code, words, waited) => {
    const { result, history, waitedMs } = await take(cluster(parts));

    expect(result).toMatchObject({ kind: "failed", code, reason: expect.stringContaining(words) });
    expect(history).toMatchObject([{ state: "done", outcome: "failed" }]);
    expect(waitedMs).toBe(waited);
  });

  test.each<readonly [string, ClusterParts, string]>([
    ["waits for the object to go", { afterDelete: "stays" }, "attachment-still-there"],
    ["waits for the attacher", { afterDelete: "pending" }, "interrupted"],
  ])("ends at once when the run is to end while it %s", async (_, parts, code) => {
    const { result, waitedMs } = await take(cluster(parts), { stopAtPause: 2 });
    expect([result, waitedMs]).toMatchObject([{ kind: "failed", code, reason: expect.stringMatching(/\w/) }, 1000]);
  });

  test.each<readonly [string, ClusterParts]>([
    ["it is gone already", { attachments: [] }],
    ["it was made again meanwhile", { attachments: [attachmentObject({ uid: "uid-2" })], lease: "none" }],
    ["it goes while the attacher is watched", { afterWatch: [] }],
    ["it is made again while the attacher is watched", { afterWatch: [attachmentObject({ uid: "uid-2" })] }],
  ])("there is nothing to do where %s", async (_, parts) => {
    const api = cluster(parts);

    const { result, history } = await take(api);

    expect([result, api.deleted, history, api.closed]).toEqual([{ kind: "unneeded" }, [], [], 1]);
  });

  test.each<readonly [string, ClusterParts, RegExp]>([
    ["its attacher has no lease", { lease: "none" }, /is unknown: it holds no lease/],
    ["it is attached by now", { attachments: [attachmentObject({ status: { attached: true } })] }, /attached by now/],
    ["it is about another node", { attachments: [attachmentObject({ node: "n2" })] }, /another node or volume/],
    [
      "somebody else holds it",
      { attachments: [attachmentObject({ finalizers: ["external-attacher/driver-example", "example.com/keep"] })] },
      /example\.com\/keep holds it/,
    ],
    [
      "its deletion was asked for before",
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
    ["a pod elsewhere uses it", { pods: [usedBy("n2", "Running")] }, /default\/db-0 uses the volume on n2/],
    ["its owner is unknown", { volume: { metadata: { name: VOLUME }, spec: {} } }, /has no CSI volume/],
    [
      "a pod here runs on another PersistentVolume of the same storage",
      {
        twins: [{ ...volumeObject({ namespace: "default", name: "twin" }), metadata: { name: "pv-twin" } }],
        pods: [usedBy("n1", "Running", "twin")],
      },
      /default\/db-0 on this node uses the volume/,
    ],
    ["a pod here has not finished with it", { pods: [usedBy("n1", "Running")] }, /has not finished/],
    ["the proof cannot be read", { volume: {} }, /its proof is incomplete/],
    ["it changes at the last moment", { onDelete: new KubeError("conflict", "changed") }, /changed during/],
  ])("is refused where %s", async (_, parts, reason) => {
    const api = cluster(parts);

    const { result, history } = await take(api);

    expect(result).toMatchObject({ kind: "refused", reason: expect.stringMatching(reason) });
    expect([api.deleted, api.closed]).toEqual([[], 1]);
    // Only what changes at the last moment was announced before.
    expect(history).toMatchObject(parts.onDelete === undefined ? [] : [{ outcome: "refused" }]);
  });

  test("is refused when somebody begins to use the volume after the first proof", async () => {
    const api = cluster({ podsAfterProof: [usedBy("n2", "Running")] });

    const { result, history } = await take(api);

    expect([result, api.deleted]).toMatchObject([{ kind: "refused", code: "pod-elsewhere-uses-volume" }, []]);
    expect(history).toMatchObject([{ outcome: "refused" }]);
  });

  test.each([
    [64 * 1024, "done"],
    [64 * 1024 + 1, "refused"],
  ])("an object of %i characters, all of which the journal would keep, is %s", async (length, kind) => {
    const plain = attachmentObject({});
    const padding = "x".repeat(length - JSON.stringify({ ...plain, padding: "" }).length);
    const api = cluster({ attachments: [{ ...plain, padding } as never] });

    const { result } = await take(api);

    expect(result).toMatchObject({ kind, ...(kind === "refused" && { code: "object-too-large" }) });
    expect(api.deleted.length > 0).toBe(kind === "done");
  });

  test.each<readonly [string, () => FakeCluster]>([
    ["while it proves", () => ({ ...cluster(), get: () => Promise.reject(new TypeError("a mistake")) })],
    ["while it deletes", () => cluster({ onDelete: new TypeError("a mistake") })],
  ])("a mistake of unghost's own %s is not taken for an answer", async (_, api) => {
    await expect(take(api())).rejects.toThrow("a mistake");
  });

  test.each([
    ["in a pod", `${KUBELET}/pods/u1/volumes/kubernetes.io~csi/${VOLUME}/mount`],
    ["by an older kubelet", `${KUBELET}/plugins/kubernetes.io/csi/pv/${VOLUME}/globalmount`],
    ["by its handle's hash, under another root", `/opt/kubelet/plugins/kubernetes.io/csi/driver/${HASH}/globalmount`],
    ["as a block device", `${KUBELET}/plugins/kubernetes.io/csi/volumeDevices/${VOLUME}/dev/u1`],
  ])("is refused while the volume is mounted here %s", async (_, path) => {
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
  ])("%s elsewhere is no objection", async (_, pods) => {
    expect((await take(cluster({ pods }))).result.kind).toBe("done");
  });

  test("nothing is done without a cluster to ask", async () => {
    expect((await take(undefined)).result).toMatchObject({ kind: "refused", code: "api-missing" });
  });

  test("reports and journals a failure of the deletion itself", async () => {
    const { result, history } = await take(cluster({ onDelete: new KubeError("forbidden", "may not delete") }));

    expect(result).toMatchObject({ kind: "failed", reason: "may not delete" });
    expect(history).toMatchObject([{ state: "done", outcome: "failed" }]);
  });
});

const STEP_IN_JOURNAL = { kind: "delete-volume-attachment", name: "csi-1", uid: "uid-1" } as const;
