import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  ATTACHER,
  runAttacher,
  type StuckAttachment,
  stuckAttachment,
  undetachedVolume,
} from "../../lab/faults/stuck-attachment.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, runPod } from "../../lab/pods.ts";
import { apiKnows, objectFile, STUB_KUBECONFIG, startStubApi } from "../../lab/stub-api.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, play, start } from "../lab/real-node.ts";
import { expectAlive, heal, unghostIn } from "./healed-node.ts";
import { named, scan } from "./scanned-node.ts";

const WITH_API = ["--kubeconfig", STUB_KUBECONFIG] as const;
const BY_NAME = [...WITH_API, "--only", "volume-attachment-stuck"] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("unattached volumes", { timeout: HANG_GUARD_MS }, () => {
  test("are found with reason, pod and attacher, and deleted only when named explicitly", async () => {
    const { node, stuck, busy } = await nodeWithStuckVolume();
    const id = `volume-attachment-stuck/${stuck.name}`;
    play((stop) => runAttacher(node, stuck, stop));

    const report = await scan(node, WITH_API);
    const [finding] = report.findings;
    const facts = finding?.evidence.map(({ fact }) => fact).join("\n");
    expect(named(report)).toEqual([id]);
    expect(finding).toMatchObject({ blocks: ["pod default/db"], subject: { type: "volume-attachment" } });
    expect(facts).toContain("the storage does not answer");
    expect(facts).toContain(`the attacher ${ATTACHER} works`);
    expect((await scan(node, [...WITH_API, "--volume-attachment-age", "1h"])).findings).toEqual([]);

    const unasked = await heal(node, WITH_API);
    expect(unasked.report.actions).toMatchObject([{ finding: id, action: "none", outcome: "skipped" }]);
    expect([unasked.code, uidInApi(node, stuck)]).toEqual([1, "first"]);

    const { code, report: healed } = await heal(node, BY_NAME);
    expect(healed.actions).toMatchObject([{ finding: id, action: "delete-volume-attachment", outcome: "healed" }]);
    expect([code, healed.remaining]).toEqual([0, []]);
    expect(uidInApi(node, stuck)).toBe("second");
    await expectAlive(node, { ready: [busy], kept: [] });
    const history = JSON.parse((await unghostIn(node, ["history", "-o", "json"])).stdout);
    expect(history.entries).toMatchObject([
      { outcome: "healed", action: { kind: "delete-volume-attachment", object: { metadata: { uid: "first" } } } },
    ]);
  });

  test("are not healed when the cluster creates the attachment again and the attacher fails again", async () => {
    const { node, stuck } = await nodeWithStuckVolume();
    play((stop) => runAttacher(node, stuck, stop, "fails"));

    const { code, report } = await heal(node, BY_NAME);

    const id = `volume-attachment-stuck/${stuck.name}`;
    expect(report.actions).toMatchObject([
      { outcome: "failed", code: "attach-fails-again", reason: expect.stringContaining("the storage does not answer") },
    ]);
    expect([code, report.remaining, uidInApi(node, stuck)]).toEqual([1, [id], "second"]);
  });

  test("that wait to be detached are found without a pod that uses them, and are not touched", async () => {
    const node = await start();
    await startStubApi(node);
    await undetachedVolume(node);

    const report = await scan(node, WITH_API);

    expect(named(report)).toEqual(["volume-attachment-stuck/csi-lab"]);
    expect(report.findings[0]).toMatchObject({
      severity: "warning",
      summary: expect.stringContaining("is still attached to this node 15m after its attachment was deleted"),
      blocks: [],
    });
    const { code, report: after } = await heal(node, BY_NAME);
    expect([code, after.actions]).toEqual([1, [expect.objectContaining({ outcome: "skipped", action: "none" })]]);
  });

  test("stay when they have a finalizer of another component, or a pod on another node uses the volume", async () => {
    const { node, stuck } = await nodeWithStuckVolume(["external-attacher/driver-lab-example", "example.com/keep"]);
    play((stop) => runAttacher(node, stuck, stop));

    const foreign = await heal(node, BY_NAME);
    expect(foreign.report.actions).toMatchObject([
      { outcome: "refused", reason: expect.stringMatching(/example\.com\/keep holds it/) },
    ]);

    await stuckAttachment(node, podRef({ name: "db" }));
    await apiKnows(node, podRef({ name: "moved" }), {
      spec: { nodeName: "elsewhere", volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
    });
    const used = await heal(node, BY_NAME);
    expect(used.report.actions).toMatchObject([
      { outcome: "refused", reason: expect.stringMatching(/default\/moved uses the volume/) },
    ]);
    expect([used.code, uidInApi(node, stuck)]).toEqual([1, "first"]);
  });

  test("stay when their attacher does not answer", async () => {
    const { node, stuck } = await nodeWithStuckVolume();

    const { code, report } = await heal(node, BY_NAME);

    expect(report.actions).toMatchObject([{ outcome: "refused", reason: expect.stringMatching(/is unknown/) }]);
    expect([code, uidInApi(node, stuck)]).toEqual([1, "first"]);
  });
});

async function nodeWithStuckVolume(finalizers?: readonly string[]) {
  const node = await start();
  await startStubApi(node);
  const busy = await runPod(node, { name: "busy", containers: [{ name: "main" }] });
  await apiKnows(node, busy.ref);
  return { node, busy, stuck: await stuckAttachment(node, podRef({ name: "db" }), finalizers) };
}

function uidInApi(node: LabNode, { address }: StuckAttachment): string {
  return JSON.parse(readFileSync(objectFile(node, address), "utf8")).metadata.uid;
}
