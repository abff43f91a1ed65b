import { mkdirSync, symlinkSync } from "node:fs";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/kube-error.ts";
import { type RecordingApi, recordingApi } from "../../kube/fake-api.ts";
import { listOf, podObject } from "../../kube/stub-server.ts";
import { attachmentObject, leaseObject, volumeObject } from "../../kube/volume-objects.ts";
import { fill, tempDir } from "../../snapshot/temp-dir.ts";

export const KUBELET = "/var/lib/kubelet";

export interface ClusterParts {
  readonly attachments?: Attachments;
  readonly volume?: object;
  readonly twins?: readonly object[];
  readonly pods?: readonly object[];
  readonly lease?: "renewed" | "still" | "none";
  /** What happens after its deletion is accepted. */
  readonly afterDelete?: "gone" | "attached" | "fails" | "pending" | "stays" | "others";
  readonly onDelete?: Error;
  /** The attachments after the attacher was watched. */
  readonly afterWatch?: Attachments;
  /** The pods at the second proof, after the deletion was journaled. */
  readonly podsAfterProof?: readonly object[];
}

const STATUS = {
  attached: { attached: true },
  fails: { attached: false, attachError: { message: "the storage does not answer" } },
  pending: { attached: false },
} as const;

/** A cluster of a few objects that behave like with a real API server and attacher. */
export function cluster(parts: ClusterParts = {}): RecordingApi {
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
  const leases = (): readonly unknown[] => {
    if (lease === "none") return [];
    reads += lease === "renewed" ? 1 : 0;
    if (reads === 2) attachments = parts.afterWatch ?? attachments;
    return [leaseObject(new Date(Date.UTC(2026, 10, 15, 3, 30, reads)).toISOString())];
  };
  const get: Api["get"] = (path) => {
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
  };
  return recordingApi(get, () => {
    if (onDelete !== undefined) throw onDelete;
    attachments = attachmentsAfter(afterDelete, attachments);
  });
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

export function usedBy(node: string, phase = "Pending", claimName = "data", name = "db-0"): object {
  const pod = podObject({ name, uid: `uid-of-${name}`, node, phase });
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] } };
}

/** A machine with one process, and a kubelet's directory. */
export function machine(mounts: readonly string[]): string {
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
