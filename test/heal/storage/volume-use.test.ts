import { describe, expect, test } from "vitest";
import { sha256Of } from "../../../src/heal/files/file-identity.ts";
import {
  identify,
  inlineHandle,
  type VolumeIdentity,
  type VolumeUse,
  type VolumeUseFacts,
  volumeUse,
} from "../../../src/heal/storage/volume-use.ts";
import { failed, read } from "../../../src/host/source.ts";
import type { ApiAttachment } from "../../../src/kube/cluster-facts.ts";
import { attachmentName } from "../../../src/kube/volume-attachments.ts";
import type { VolumePod, VolumeUsers } from "../../../src/kube/volume-users.ts";
import type { ApiVolume } from "../../../src/kube/volumes.ts";
import type { MountEntry } from "../../../src/snapshot/mount-tables.ts";

const DRIVER = "driver.example";
const HANDLE = "vol-0d5c77";
const NODE = "n1";
const NAME = attachmentName(HANDLE, DRIVER, NODE);
const KUBELET = "/var/lib/kubelet";

const PV: ApiVolume = {
  name: "pvc-old-4b1d",
  claim: { namespace: "shop", name: "old" },
  csi: { driver: DRIVER, volumeHandle: HANDLE },
  shared: false,
};
const TWIN: ApiVolume = { ...PV, name: "pvc-twin-9e", claim: { namespace: "blog", name: "data" } };
const ATTACHMENT: ApiAttachment = {
  name: NAME,
  uid: "u",
  resourceVersion: "1",
  attacher: DRIVER,
  node: NODE,
  volume: PV.name,
  attached: false,
  createdAt: new Date(0),
  deleting: false,
  finalizers: [],
};
const POD: VolumePod = {
  namespace: "blog",
  name: "web-0",
  uid: "pod-1",
  node: NODE,
  stage: "active",
  claims: ["data"],
  inline: [],
};

function identity(volumes: readonly ApiVolume[] = [PV, TWIN]): VolumeIdentity {
  const found = identify(ATTACHMENT, volumes);
  if (found.kind !== "identified") throw new Error(found.reason);
  return found.identity;
}

const NO_USERS: VolumeUsers = { volumes: [], attachments: [ATTACHMENT], pods: [], reportedInUse: [] };
const UNUSED: VolumeUseFacts = {
  users: NO_USERS,
  kubelet: read([{ path: `${KUBELET}/pods/p/volumes/kubernetes.io~csi/other`, name: "other", podUid: "p" }]),
  mounts: read([mount({ point: "/", root: "/" }), mount({ point: "/data", root: "/" })]),
  containers: read([{ container: "c", pod: "a/b", hostPath: `${KUBELET}/pods/p/etc-hosts` }]),
  devices: read({ numbers: [], openers: [] }),
};

function mount(parts: Partial<MountEntry>): MountEntry {
  return { pid: 77, device: "8:1", root: "/", point: "/", source: "/dev/sda1", ...parts };
}

function using(parts: Partial<VolumeUsers>): Partial<VolumeUseFacts> {
  return { users: { ...NO_USERS, ...parts } };
}

function record(name: string, data?: object): Partial<VolumeUseFacts> {
  return { kubelet: read([{ path: `${KUBELET}/x/${name}`, name, ...(data === undefined ? {} : { data }) }]) };
}

/** Each source alone shows that the volume is in use. */
const IN_USE: readonly (readonly [string, Partial<VolumeUseFacts>, string])[] = [
  ["a pod uses another PersistentVolume of the same storage", using({ pods: [POD] }), "pod-uses-volume"],
  [
    "a pod uses the attachment's own PersistentVolume",
    using({ pods: [{ ...POD, namespace: "shop", claims: ["old"] }] }),
    "pod-uses-volume",
  ],
  [
    "a pod uses it as an inline volume",
    using({ pods: [{ ...POD, claims: [], inline: [{ name: "scratch", driver: DRIVER, attributes: [HANDLE] }] }] }),
    "pod-uses-volume",
  ],
  [
    "a pod on another node uses it",
    using({ pods: [{ ...POD, node: "n2", stage: "waiting" }] }),
    "pod-elsewhere-uses-volume",
  ],
  [
    "attached to another node",
    using({ attachments: [{ ...ATTACHMENT, name: "csi-2", node: "n2", attached: true, volume: TWIN.name }] }),
    "attached-elsewhere",
  ],
  [
    "attached to this node under the other name",
    using({ attachments: [{ ...ATTACHMENT, name: "csi-2", attached: true, volume: TWIN.name }] }),
    "attached-under-another-name",
  ],
  [
    "kubelet reports it, and no pod waits for it",
    using({ reportedInUse: [`kubernetes.io/csi/${DRIVER}^${HANDLE}`] }),
    "node-reports-in-use",
  ],
  ["kubelet's record by PersistentVolume", record(PV.name), "kubelet-has-record"],
  ["kubelet's record by the twin's name", record(TWIN.name), "kubelet-has-record"],
  ["kubelet's record by spec name", record("renamed", { specName: TWIN.name }), "kubelet-has-record"],
  ["kubelet's record by handle", record("gone-pv", { driver: DRIVER, handle: HANDLE }), "kubelet-has-record"],
  ["kubelet's record by attachment", record("gone-pv", { driver: DRIVER, attachment: NAME }), "kubelet-has-record"],
  ["kubelet's staging directory", record(sha256Of(HANDLE)), "kubelet-has-record"],
  [
    "mounted for a pod",
    { mounts: read([mount({ point: `${KUBELET}/pods/p/volumes/kubernetes.io~csi/${TWIN.name}/mount` })]) },
    "mounted",
  ],
  [
    "mounted below a subPath",
    { mounts: read([mount({ point: `${KUBELET}/pods/p/volume-subpaths/${PV.name}/c/0` })]) },
    "mounted",
  ],
  [
    "staged",
    { mounts: read([mount({ point: `/k/plugins/kubernetes.io/csi/d/${sha256Of(HANDLE)}/globalmount` })]) },
    "mounted",
  ],
  [
    "only in a container, from the driver's directory",
    { mounts: read([mount({ root: `/var/lib/driver/${HANDLE}`, point: "/data" })]) },
    "mounted",
  ],
  [
    "only in a container, from the driver's server",
    { mounts: read([mount({ device: "0:55", source: `10.0.0.9:/export/${HANDLE}`, point: "/data" })]) },
    "mounted",
  ],
  [
    "only in a container, by the device's number",
    {
      mounts: read([mount({ device: "254:3", point: "/data" })]),
      devices: read({ numbers: ["254:3"], openers: [] }),
    },
    "mounted",
  ],
  [
    "a container mounts it",
    {
      containers: read([
        { container: "c", pod: "blog/web-0", hostPath: `/k/pods/p/volumes/kubernetes.io~csi/${TWIN.name}/mount` },
      ]),
    },
    "container-mounts-volume",
  ],
  [
    "a process has its device open",
    { devices: read({ numbers: ["254:3"], openers: [{ pid: 9, path: `/dev/longhorn/${PV.name}` }] }) },
    "device-open",
  ],
];

const UNREAD: readonly (readonly [string, Partial<VolumeUseFacts>, string])[] = [
  ["kubelet's records", { kubelet: failed("no") }, "kubelet-records-unread"],
  ["the mount tables", { mounts: failed("no") }, "mounts-unread"],
  ["the runtime's containers", { containers: failed("no") }, "containers-unread"],
  ["the open devices", { devices: failed("no") }, "devices-unread"],
];

describe("volume use", () => {
  test("unused when every source was read and none shows a use", () => {
    expect(volumeUse(identity(), UNUSED)).toMatchObject({ kind: "unused" });
  });

  test.each(IN_USE)("%s", (_, facts, code) => {
    expect(volumeUse(identity(), { ...UNUSED, ...facts })).toMatchObject({ kind: "in-use", code });
  });

  test.each(UNREAD)("unknown without %s", (_, facts, code) => {
    expect(volumeUse(identity(), { ...UNUSED, ...facts })).toMatchObject({ kind: "unknown", code });
  });

  test("never unused with one use or one unread source, in any combination", () => {
    const all = [...IN_USE, ...UNREAD];
    const wrong: string[] = [];
    for (const [one, first] of all) {
      for (const [other, second] of all) {
        const use: VolumeUse = volumeUse(identity(), { ...UNUSED, ...first, ...second });
        if (use.kind === "unused") wrong.push(`${one} and ${other}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test.each<readonly [string, Partial<VolumeUseFacts>]>([
    ["a pod that has finished", using({ pods: [{ ...POD, stage: "finished" }] })],
    ["a pod that waits for the attachment", using({ pods: [{ ...POD, stage: "waiting" }] })],
    [
      "kubelet's report about such a pod",
      using({ pods: [{ ...POD, stage: "waiting" }], reportedInUse: [`kubernetes.io/csi/${DRIVER}^${HANDLE}`] }),
    ],
    ["an unscheduled pod", using({ pods: [withoutNode(POD)] })],
    ["a claim of the same name in another namespace", using({ pods: [{ ...POD, namespace: "test" }] })],
    [
      "an inline volume of another driver",
      using({ pods: [{ ...POD, claims: [], inline: [{ name: "s", driver: "other", attributes: [HANDLE] }] }] }),
    ],
    ["a record of another driver with the same handle", record("x", { driver: "other", handle: HANDLE })],
    ["a longer name with the same prefix", { mounts: read([mount({ point: `/mnt/${HANDLE}-backup` })]) }],
  ])("%s is not a use", (_, facts) => {
    expect(volumeUse(identity(), { ...UNUSED, ...facts })).toMatchObject({ kind: "unused" });
  });

  test("a multi-node volume may be attached to and used on other nodes", () => {
    const shared = [{ ...PV, shared: true }];
    const facts = using({
      pods: [{ ...POD, namespace: "shop", claims: ["old"], node: "n2" }],
      attachments: [{ ...ATTACHMENT, name: "csi-2", node: "n2", attached: true }],
    });

    expect(volumeUse(identity(shared), { ...UNUSED, ...facts })).toMatchObject({ kind: "unused" });
    expect(volumeUse(identity([PV]), { ...UNUSED, ...facts }).kind).toBe("in-use");
  });

  test("a handle that is a common word counts only below kubelet's directories", () => {
    const named = [{ ...PV, csi: { driver: DRIVER, volumeHandle: "data" } }];

    expect(volumeUse(identity(named), UNUSED)).toMatchObject({ kind: "unused" });
    const path = "/k/plugins/kubernetes.io/csi/volumeDevices/publish/data";
    expect(volumeUse(identity(named), { ...UNUSED, mounts: read([mount({ point: path })]) }).kind).toBe("in-use");
  });

  test("an inline volume is identified by the handle that kubelet generated", () => {
    const handle = inlineHandle(POD.uid, "scratch");
    const named = [{ ...PV, csi: { driver: DRIVER, volumeHandle: handle } }];
    const pod = { ...POD, claims: [], inline: [{ name: "scratch", driver: DRIVER, attributes: [] }] };

    expect(volumeUse(identity(named), { ...UNUSED, ...using({ pods: [pod] }) })).toMatchObject({
      code: "pod-uses-volume",
    });
  });
});

describe("volume of an attachment", () => {
  test("every PersistentVolume of the same storage, also by the attachment's own name", () => {
    const renamed: ApiVolume = { ...PV, csi: { driver: DRIVER, volumeHandle: "another-handle" } };
    const foreign: ApiVolume = { ...TWIN, name: "foreign", csi: { driver: "other", volumeHandle: HANDLE } };

    expect(identity([PV, TWIN, foreign]).volumes.map(({ name }) => name)).toEqual([PV.name, TWIN.name]);
    expect(identity([renamed, TWIN]).handles).toEqual(["another-handle", HANDLE]);
  });

  test.each<readonly [string, readonly ApiVolume[]]>([
    ["gone", [TWIN]],
    ["not of CSI", [{ name: PV.name, claim: { namespace: "shop", name: "old" }, shared: false }]],
    ["another driver's", [{ ...PV, csi: { driver: "other", volumeHandle: HANDLE } }]],
    ["without a claim", [withoutClaim(PV)]],
  ])("unknown when its PersistentVolume is %s", (_, volumes) => {
    expect(identify(ATTACHMENT, volumes).kind).toBe("unidentified");
  });
});

function withoutNode({ node: _node, ...pod }: VolumePod): VolumePod {
  return pod;
}

function withoutClaim({ claim: _claim, ...volume }: ApiVolume): ApiVolume {
  return volume;
}
