import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sha256Of } from "../../../src/heal/files/file-identity.ts";
import { identify, inlineHandle, volumeUse } from "../../../src/heal/storage/volume-use.ts";
import { read } from "../../../src/host/source.ts";
import type { ApiAttachment } from "../../../src/kube/cluster-facts.ts";
import { attachmentName } from "../../../src/kube/volume-attachments.ts";
import type { VolumePod, VolumeUsers } from "../../../src/kube/volume-users.ts";
import type { ApiVolume } from "../../../src/kube/volumes.ts";
import { readKubeletVolumes } from "../../../src/snapshot/kubelet-volumes.ts";
import type { MountEntry } from "../../../src/snapshot/mount-tables.ts";
import { fill, tempDir } from "../../snapshot/temp-dir.ts";

/** Files and mounts that kubelet 1.36.4 created for a CSI driver of the lab. */
const KUBELET = "/var/lib/kubelet";
const CSI = `${KUBELET}/plugins/kubernetes.io/csi`;
const DRIVER = "driver.example";
const HANDLE = "vol-0d5c77";
const POD_UID = "18e9f9c9-3100-4843-878d-d86a3667195c";

const PV: ApiVolume = {
  name: "pv-data",
  claim: { namespace: "shop", name: "data" },
  csi: { driver: DRIVER, volumeHandle: HANDLE },
  shared: false,
};
const POD: VolumePod = {
  namespace: "shop",
  name: "db-0",
  uid: POD_UID,
  node: "n1",
  stage: "active",
  claims: ["data"],
  inline: [],
};

function attachmentTo(node: string, parts: Partial<ApiAttachment> = {}): ApiAttachment {
  return {
    name: attachmentName(HANDLE, DRIVER, node),
    uid: node,
    resourceVersion: "1",
    attacher: DRIVER,
    node,
    volume: PV.name,
    attached: false,
    createdAt: new Date(0),
    deleting: false,
    finalizers: [],
    ...parts,
  };
}

interface Habit {
  readonly volumes?: readonly ApiVolume[];
  readonly files?: Readonly<Record<string, string>>;
  readonly arrange?: (root: string) => void;
  readonly mounts?: readonly Partial<MountEntry>[];
  readonly users?: Partial<VolumeUsers>;
}

function useOf({ volumes = [PV], files = {}, arrange, mounts = [], users = {} }: Habit) {
  const root = tempDir();
  mkdirSync(`${root}${KUBELET}/pods`, { recursive: true });
  fill(root, files);
  arrange?.(root);
  const found = identify(attachmentTo("n1"), volumes);
  if (found.kind !== "identified") return found;
  return volumeUse(found.identity, {
    users: { volumes, attachments: [attachmentTo("n1")], pods: [], reportedInUse: [], ...users },
    kubelet: readKubeletVolumes(root, KUBELET),
    mounts: read(mounts.map((one) => ({ pid: 1, device: "254:0", root: "/", point: "/", source: "/dev/vda", ...one }))),
    containers: read([]),
    devices: read({ numbers: [], openers: [] }),
  });
}

function volData(parts: object): string {
  const attachmentID = attachmentName(HANDLE, DRIVER, "n1");
  return JSON.stringify({ attachmentID, driverName: DRIVER, nodeName: "n1", specVolID: PV.name, ...parts });
}

/** Kubelet links the pod's device to the published path of the driver. */
function linkDevice(root: string): void {
  const published = `${root}${CSI}/volumeDevices/publish/pv-data`;
  mkdirSync(published, { recursive: true });
  // A substitute of the device node, which would need more rights: it is not a regular file either.
  execFileSync("mkfifo", [`${published}/${POD_UID}`]);
  mkdirSync(`${root}${KUBELET}/pods/${POD_UID}/volumeDevices/kubernetes.io~csi`, { recursive: true });
  symlinkSync(
    `${CSI}/volumeDevices/publish/pv-data/${POD_UID}`,
    `${root}${KUBELET}/pods/${POD_UID}/volumeDevices/kubernetes.io~csi/pv-data`,
  );
}

const BLOCK_DATA = `${CSI}/volumeDevices/pv-data/data/vol_data.json`;
const INLINE = `${KUBELET}/pods/${POD_UID}/volumes/kubernetes.io~csi/scratch`;

describe("a block volume is in use", () => {
  test.each<readonly [string, Habit, string]>([
    ["by the link to its device in the pod's directory", { arrange: linkDevice }, "kubelet-has-record"],
    [
      "by kubelet's data of the volume",
      { files: { [BLOCK_DATA]: volData({ volumeHandle: HANDLE }) } },
      "kubelet-has-record",
    ],
    [
      "by kubelet's data under the name of a deleted PersistentVolume",
      {
        files: {
          [BLOCK_DATA.replaceAll("pv-data", "pv-old")]: volData({ volumeHandle: HANDLE, specVolID: "pv-old" }),
        },
      },
      "kubelet-has-record",
    ],
    [
      "by the bind mount of its device",
      {
        mounts: [
          {
            root: `/disk${CSI}/volumeDevices/publish/pv-data/${POD_UID}`,
            point: `${CSI}/volumeDevices/pv-data/dev/${POD_UID}`,
          },
        ],
      },
      "mounted",
    ],
  ])("%s", (_what, habit, code) => {
    expect(useOf(habit)).toMatchObject({ kind: "in-use", code });
  });

  test("not because of another block volume", () => {
    const other = volData({ volumeHandle: "vol-other", specVolID: "pv-other", attachmentID: "csi-other" });
    const habit = { files: { [BLOCK_DATA.replaceAll("pv-data", "pv-other")]: other } };

    expect(useOf(habit)).toMatchObject({ kind: "unused" });
  });
});

describe("ReadWriteMany on two nodes", () => {
  const volumes = [{ ...PV, shared: true }];
  const there = { ...POD, name: "db-1", uid: "u2", node: "n2" };
  const attachments = [attachmentTo("n1"), attachmentTo("n2", { attached: true })];

  test("a use on the other node does not keep this node's attachment", () => {
    expect(useOf({ volumes, users: { pods: [there], attachments } })).toMatchObject({ kind: "unused" });
  });

  test.each<readonly [string, Habit, string]>([
    ["a pod of this node", { users: { pods: [there, POD], attachments } }, "pod-uses-volume"],
    [
      "kubelet's record of a pod that the API has lost",
      {
        users: { pods: [there], attachments },
        files: {
          [`${KUBELET}/pods/${POD_UID}/volumes/kubernetes.io~csi/pv-data/vol_data.json`]: volData({
            volumeHandle: HANDLE,
          }),
        },
      },
      "kubelet-has-record",
    ],
  ])("%s keeps the attachment", (_what, habit, code) => {
    expect(useOf({ ...habit, volumes })).toMatchObject({ kind: "in-use", code });
  });
});

describe("an inline ephemeral volume", () => {
  const own = inlineHandle(POD_UID, "scratch");
  const data = volData({ volumeHandle: own, specVolID: "scratch", attachmentID: attachmentName(own, DRIVER, "n1") });
  const files = { [`${INLINE}/vol_data.json`]: data };

  test("of the same driver is a different volume", () => {
    expect(useOf({ files })).toMatchObject({ kind: "unused" });
  });

  test("matches a PersistentVolume with the handle that kubelet generated", () => {
    const volumes = [{ ...PV, csi: { driver: DRIVER, volumeHandle: own } }];

    expect(useOf({ files, volumes })).toMatchObject({ kind: "in-use", code: "kubelet-has-record" });
  });

  test("with a torn record makes the use unknown", () => {
    expect(useOf({ files: { [`${INLINE}/vol_data.json`]: "" } })).toMatchObject({ kind: "unknown" });
  });
});

describe("a driver without staging", () => {
  test("an empty volume directory of kubelet is a use", () => {
    const arrange = (root: string) =>
      mkdirSync(`${root}${CSI}/${DRIVER}/${sha256Of(HANDLE)}/globalmount`, { recursive: true });

    expect(useOf({ arrange })).toMatchObject({ kind: "in-use", code: "kubelet-has-record" });
  });
});

describe("a PersistentVolume renamed under its claim", () => {
  const renamed = { ...PV, name: "pv-renamed" };
  const files = {
    [`${KUBELET}/pods/${POD_UID}/volumes/kubernetes.io~csi/pv-data/vol_data.json`]: volData({ volumeHandle: HANDLE }),
  };

  test("the attachment of the old name has no known owner", () => {
    expect(useOf({ volumes: [renamed], files })).toMatchObject({ kind: "unidentified" });
  });

  test.each<readonly [string, Habit, string]>([
    ["by the claim of the new name", { volumes: [PV, renamed], users: { pods: [POD] } }, "pod-uses-volume"],
    [
      "by kubelet's record under the old name",
      { volumes: [{ ...PV, claim: { namespace: "shop", name: "other" } }], files, users: { pods: [POD] } },
      "kubelet-has-record",
    ],
    [
      "by kubelet's record under the new name",
      {
        files: {
          [`${KUBELET}/pods/${POD_UID}/volumes/kubernetes.io~csi/pv-renamed/vol_data.json`]: volData({
            volumeHandle: HANDLE,
            specVolID: "pv-renamed",
          }),
        },
      },
      "kubelet-has-record",
    ],
    [
      "by the attachment of the new name",
      {
        volumes: [PV, renamed],
        users: {
          attachments: [
            attachmentTo("n1"),
            attachmentTo("n1", { name: "csi-x", volume: "pv-renamed", attached: true }),
          ],
        },
      },
      "attached-under-another-name",
    ],
  ])("is in use %s", (_what, habit, code) => {
    expect(useOf(habit)).toMatchObject({ kind: "in-use", code });
  });
});
