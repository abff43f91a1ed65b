import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  ATTACHER,
  attacherWorks,
  type StuckAttachment,
  stuckAttachment,
  undetachedVolume,
} from "../../lab/faults/stuck-attachment.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, runPod } from "../../lab/pods.ts";
import { apiKnows, askedOfApi, objectFile, STUB_KUBECONFIG, startStubApi } from "../../lab/stub-api.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, heal, unghostIn } from "./healed-node.ts";
import { named, scan } from "./scanned-node.ts";

const WITH_API = ["--kubeconfig", STUB_KUBECONFIG] as const;
const BY_NAME = [...WITH_API, "--only", "volume-attachment-stuck"] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("unattached volumes", { timeout: HANG_GUARD_MS }, () => {
  test("are found and explained, with reason, pod and attacher, and left alone even when named explicitly", async () => {
    const { node, stuck, busy } = await nodeWithStuckVolume();
    const id = `volume-attachment-stuck/${stuck.name}`;
    await attacherWorks(node);

    const report = await scan(node, WITH_API);
    const [finding] = report.findings;
    const facts = finding?.evidence.map(({ fact }) => fact).join("\n");
    expect(named(report)).toEqual([id]);
    expect(finding).toMatchObject({ blocks: ["pod default/db"], subject: { type: "volume-attachment" } });
    expect(facts).toContain("the storage does not answer");
    expect(facts).toContain(`the attacher ${ATTACHER} works`);
    expect((await scan(node, [...WITH_API, "--volume-attachment-age", "1h"])).findings).toEqual([]);

    await askedOfApi(node);
    for (const flags of [WITH_API, BY_NAME]) {
      const { code, report: left } = await heal(node, flags);
      expect(left.actions).toMatchObject([
        { finding: id, action: "none", outcome: "skipped", reason: expect.stringContaining(ATTACHER) },
      ]);
      expect([code, left.remaining]).toEqual([1, [id]]);
    }
    await expectUntouched(node, stuck);
    await expectAlive(node, { ready: [busy], kept: [] });
    const history = JSON.parse((await unghostIn(node, ["history", "-o", "json"])).stdout);
    expect(history.entries).toEqual([]);
  });

  test("that wait to be detached are found without a pod that uses them, and are left alone", async () => {
    const node = await start();
    await startStubApi(node);
    const stuck = await undetachedVolume(node);

    const report = await scan(node, WITH_API);

    expect(named(report)).toEqual(["volume-attachment-stuck/csi-lab"]);
    expect(report.findings[0]).toMatchObject({
      severity: "warning",
      summary: expect.stringContaining("is still attached to this node 15m after its attachment was deleted"),
      blocks: [],
    });
    await askedOfApi(node);
    const { code, report: after } = await heal(node, BY_NAME);
    expect([code, after.actions]).toEqual([1, [expect.objectContaining({ outcome: "skipped", action: "none" })]]);
    await expectUntouched(node, stuck);
  });
});

async function nodeWithStuckVolume() {
  const node = await start();
  await startStubApi(node);
  const busy = await runPod(node, { name: "busy", containers: [{ name: "main" }] });
  await apiKnows(node, busy.ref);
  return { node, busy, stuck: await stuckAttachment(node, podRef({ name: "db" })) };
}

/** Nothing in the cluster was written, and the attachment is what it was. */
async function expectUntouched(node: LabNode, { address }: StuckAttachment): Promise<void> {
  const asked = await askedOfApi(node);
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.filter((request) => !request.startsWith("GET "))).toEqual([]);
  const { metadata } = JSON.parse(readFileSync(objectFile(node, address), "utf8"));
  expect(metadata).toMatchObject({ uid: "first", finalizers: [expect.stringContaining("external-attacher/")] });
}
