import { afterAll, afterEach, describe, expect, test } from "vitest";
import { attachmentName } from "../../src/kube/attachments.ts";
import { base64, makeRig, NODE, PODS } from "./rig.ts";
import { type Asked, listOf, nodeObject, podObject, type Reply, statusOf } from "./stub-server.ts";
import {
  attachmentObject,
  DRIVER,
  HANDLE,
  LEASES,
  leaseObject,
  VOLUME,
  VOLUMES,
  volumeObject,
} from "./volume-objects.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";

function withVolumes(items: readonly unknown[], phase = "Pending"): Readonly<Record<string, (asked: Asked) => Reply>> {
  const pod = podObject({ name: "db-0", uid: "u1", phase });
  const volumes = [
    { name: "data", persistentVolumeClaim: { claimName: "data" } },
    { name: "scratch", ephemeral: { volumeClaimTemplate: {} } },
    { name: "cfg", configMap: { name: "cfg" } },
  ];
  return {
    [PODS]: () => ({ body: listOf([{ ...pod, spec: { ...pod.spec, volumes } }]) }),
    [ATTACHMENTS]: () => ({ body: listOf(items) }),
    [`${VOLUMES}/${VOLUME}`]: () => ({ body: volumeObject() }),
    [LEASES]: () => ({ body: listOf([leaseObject("2026-11-15T03:30:00.000000Z")]) }),
  };
}

describe("volumes that a node waits for", () => {
  test("are those of this node, with claim, attacher and where else they are attached", async () => {
    const elsewhere = attachmentObject({ name: "csi-3", node: "n2", status: { attached: true } });
    const attached = attachmentObject({ name: "csi-2", status: { attached: true } });
    const error = { message: "volume is in use", time: "2026-11-15T03:25:00Z" };
    await rig.serve(
      withVolumes([attachmentObject({ status: { attached: false, attachError: error } }), attached, elsewhere]),
    );

    const { unattached, pods, gaps } = await rig.askFacts();

    expect(gaps).toEqual([]);
    expect(pods[0]?.claims).toEqual(["data", "db-0-scratch"]);
    expect(unattached).toEqual([
      expect.objectContaining({
        name: "csi-1",
        node: "n1",
        volume: VOLUME,
        error: "volume is in use",
        claim: { namespace: "default", name: "data" },
        inUse: false,
        holders: [{ node: "n2", deleting: false, state: { kind: "gone" } }],
        lease: expect.objectContaining({ holder: "ctrl-1", durationSeconds: 15 }),
        unknown: [],
      }),
    ]);
  });

  test.each<readonly [string, object, object]>([
    ["is not Ready", { conditions: [{ type: "Ready", status: "Unknown" }] }, { ready: false }],
    ["is cordoned", { unschedulable: true }, { cordoned: true }],
    ["reports the volume in use", { volumesInUse: [`kubernetes.io/csi/${DRIVER}^${HANDLE}`] }, { inUse: true }],
    ["uses other volumes", { volumesInUse: [`kubernetes.io/csi/${DRIVER}^other`] }, {}],
  ])("are held by a node that %s", async (_what, { unschedulable, ...status }: { unschedulable?: boolean }, state) => {
    const name = attachmentName({ driver: DRIVER, handle: HANDLE }, "n2");
    const deletionTimestamp = "2026-11-15T03:25:00Z";
    const elsewhere = attachmentObject({ name, node: "n2", deletionTimestamp, status: { attached: true } });
    const conditions = [{ type: "Ready", status: "True" }];
    await rig.serve({
      ...withVolumes([attachmentObject({}), elsewhere]),
      "/api/v1/nodes/n2": () => ({
        body: { metadata: { name: "n2" }, spec: { unschedulable }, status: { conditions, ...status } },
      }),
    });

    const [one] = (await rig.askFacts()).unattached ?? [];

    const there = { kind: "there", ready: true, cordoned: false, inUse: false };
    expect(one?.holders).toEqual([{ node: "n2", deleting: true, state: { ...there, ...state } }]);
  });

  test("are held by no other node if they are made for several", async () => {
    const elsewhere = attachmentObject({ name: "csi-3", node: "n2", status: { attached: true } });
    const volume = volumeObject();
    await rig.serve({
      ...withVolumes([attachmentObject({}), elsewhere]),
      [`${VOLUMES}/${VOLUME}`]: () => ({
        body: { ...volume, spec: { ...volume.spec, accessModes: ["ReadWriteMany"] } },
      }),
    });

    const [one] = (await rig.askFacts()).unattached ?? [];

    expect(one).toMatchObject({ claim: { name: "data" }, holders: [] });
  });

  test("that this node's kubelet still uses are marked so", async () => {
    const name = attachmentName({ driver: DRIVER, handle: HANDLE }, "n1");
    const deleted = attachmentObject({ name, deletionTimestamp: "2026-11-15T03:25:00Z", status: { attached: true } });
    const node = nodeObject();
    const volumesInUse = [`kubernetes.io/csi/${DRIVER}^${HANDLE}`];
    await rig.serve({
      ...withVolumes([deleted], "Running"),
      [NODE]: () => ({ body: { ...node, status: { ...node.status, volumesInUse } } }),
    });

    expect((await rig.askFacts()).unattached).toMatchObject([{ name, inUse: true }]);
  });

  test("that no attacher has processed have no status, and are not attached", async () => {
    await rig.serve(withVolumes([attachmentObject({ status: undefined })]));

    expect((await rig.askFacts()).unattached).toHaveLength(1);
  });

  test("that only another node has are those that a pod here waits for, with the pods that use them there", async () => {
    const name = attachmentName({ driver: DRIVER, handle: HANDLE }, "n2");
    const elsewhere = attachmentObject({ name, node: "n2", status: { attached: true } });
    const others = attachmentObject({ name: "csi-9", node: "n2", volume: "pv-other", status: { attached: true } });
    const user = podObject({ name: "db-1", uid: "u2", node: "n2" });
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const claim = { namespace: "default", name: "another" };
    await rig.serve({
      ...withVolumes([others, elsewhere]),
      [`${VOLUMES}/pv-other`]: () => ({ body: volumeObject(claim) }),
      [`${ATTACHMENTS}/${name}`]: () => ({ body: elsewhere }),
      "/api/v1/nodes/n2": () => ({ body: nodeObject("n2") }),
      "/api/v1/namespaces/default/pods": () => ({ body: listOf([{ ...user, spec: { ...user.spec, volumes } }]) }),
    });

    expect((await rig.askFacts()).unattached).toEqual([
      expect.objectContaining({
        name,
        node: "n2",
        awaited: true,
        claim: { namespace: "default", name: "data" },
        holders: [expect.objectContaining({ node: "n2", deleting: false, pods: ["default/db-1"] })],
      }),
    ]);
  });

  test("for which no attachment was requested are found by their claim, where credentials may read it", async () => {
    const bound = { metadata: { name: "data" }, spec: { volumeName: VOLUME } };
    const answers = {
      ...withVolumes([]),
      "/api/v1/namespaces/default/persistentvolumeclaims/data": () => ({ body: bound }),
      "/apis/storage.k8s.io/v1/csidrivers/driver.example": () => ({ body: { spec: { attachRequired: true } } }),
    };
    await rig.serve(answers);
    const name = attachmentName({ driver: DRIVER, handle: HANDLE }, "n1");
    expect((await rig.askFacts()).unattached).toMatchObject([
      { name, node: "n1", missing: true, attached: false, createdAt: new Date("2026-11-15T03:21:45Z") },
    ]);

    const mountedOnly = () => ({ body: { spec: { attachRequired: false } } });
    await rig.serve({ ...answers, "/apis/storage.k8s.io/v1/csidrivers/driver.example": mountedOnly });
    expect((await rig.askFacts()).unattached).toEqual([]);
    await rig.serve({
      ...answers,
      "/api/v1/namespaces/default/persistentvolumeclaims/data": () => statusOf(403, "no"),
    });
    expect(await rig.askFacts()).toMatchObject({ unattached: [], gaps: [] });
  });

  test("that are attached here and elsewhere are followed, unless they are made for several nodes", async () => {
    const items = ["n1", "n2"].map((node) =>
      attachmentObject({ name: `csi-${node}`, node, status: { attached: true } }),
    );
    await rig.serve(withVolumes(items, "Running"));
    expect((await rig.askFacts()).unattached?.map(({ name }) => name)).toEqual(["csi-n1"]);

    const volume = volumeObject();
    const shared = { ...volume, spec: { ...volume.spec, accessModes: ["ReadWriteMany"] } };
    await rig.serve({ ...withVolumes(items, "Running"), [`${VOLUMES}/${VOLUME}`]: () => ({ body: shared }) });
    expect((await rig.askFacts()).unattached).toEqual([]);
  });

  test("that are attached and whose deletion hangs are read without a waiting pod", async () => {
    const deleted = attachmentObject({ deletionTimestamp: "2026-11-15T03:25:00Z", status: { attached: true } });
    await rig.serve(withVolumes([deleted, attachmentObject({ name: "csi-2", status: { attached: true } })], "Running"));

    expect((await rig.askFacts()).unattached).toEqual([
      expect.objectContaining({ name: "csi-1", attached: true, deletedAt: new Date("2026-11-15T03:25:00Z") }),
    ]);
  });

  test("have the attacher's lease by the name that the sidecar gives it", async () => {
    const { asked } = await rig.serve(withVolumes([attachmentObject({})]));

    await rig.askFacts();

    expect(asked.find(({ path }) => path === LEASES)?.query.get("fieldSelector")).toBe(
      "metadata.name=external-attacher-leader-driver-example",
    );
  });

  test.each<readonly [string, string, Reply, RegExp]>([
    ["attachments", ATTACHMENTS, statusOf(403, "no"), /which volumes wait to be attached is not known/],
  ])("%s that are forbidden are a gap", async (_what, path, reply, gap) => {
    await rig.serve({ ...withVolumes([]), [path]: () => reply });

    const { gaps, unattached, unattachedUnread } = await rig.askFacts();

    expect(unattached).toBeUndefined();
    expect(unattachedUnread).toContain("403");
    expect(gaps.join()).toMatch(gap);
  });

  test("are not asked for with kubelet's own credentials, which is no gap, but known to be unread", async () => {
    const { cert, key } = rig.ca.issue("/O=system:nodes/CN=system:node:n1");
    const { asked } = await rig.serve(withVolumes([]));

    const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
    const { gaps, unattachedUnread } = await rig.askFacts({ user });

    expect([gaps, unattachedUnread]).toEqual([[], expect.stringContaining("may not list VolumeAttachments")]);
    expect(asked.map(({ path }) => path)).not.toContain(ATTACHMENTS);
  });

  test("report a volume and a lease that are forbidden as unknown", async () => {
    const no = (): Reply => statusOf(403, "no");
    await rig.serve({ ...withVolumes([attachmentObject({})]), [`${VOLUMES}/${VOLUME}`]: no, [LEASES]: no });

    const [one] = (await rig.askFacts()).unattached ?? [];

    expect(one?.unknown).toEqual([
      expect.stringMatching(/^its claim is unknown/),
      expect.stringMatching(/whether its attacher/),
    ]);
  });

  test("are none on a server without a storage API", async () => {
    await rig.serve({ ...withVolumes([]), [ATTACHMENTS]: () => statusOf(404, "no") });

    expect(await rig.askFacts()).toMatchObject({ unattached: [], gaps: [] });
  });
});
