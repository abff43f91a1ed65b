import { afterAll, afterEach, describe, expect, test } from "vitest";
import { makeRig, PODS } from "./rig.ts";
import { type Asked, listOf, podObject, type Reply, statusOf } from "./stub-server.ts";
import { attachmentObject, LEASES, leaseObject, VOLUME, VOLUMES, volumeObject } from "./volume-objects.ts";

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
        attachedTo: ["n2"],
        lease: expect.objectContaining({ holder: "ctrl-1", durationSeconds: 15 }),
        unknown: [],
      }),
    ]);
  });

  test("that no attacher has processed have no status, and are not attached", async () => {
    await rig.serve(withVolumes([attachmentObject({ status: undefined })]));

    expect((await rig.askFacts()).unattached).toHaveLength(1);
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

    const { gaps, unattached } = await rig.askFacts();

    expect(unattached).toBeUndefined();
    expect(gaps.join()).toMatch(gap);
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
