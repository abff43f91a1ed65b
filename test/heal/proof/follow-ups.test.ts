import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Step } from "../../../src/evidence/step.ts";
import { DEFAULT_WAITS } from "../../../src/heal/proof/fresh-facts.ts";
import { stormBrake } from "../../../src/heal/proof/storm-brake.ts";
import { runAction } from "../../../src/heal/run-action.ts";
import { doneInWords } from "../../../src/report/step-words.ts";
import { fakeTools } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const KICK: Step = { kind: "kick-pod", namespace: "default", name: "attacher", uid: "1", node: "n1" };

let fixture: HealFixture;
let root = "";
beforeEach(async () => {
  fixture = await makeHealFixture();
  root = fixture.caches;
});
afterEach(() => fixture.remove());

async function run(followUps: readonly Step[]) {
  let asked = 0;
  const cluster = () => {
    asked++;
    return Promise.resolve(undefined);
  };
  const tools = fakeTools(fixture, { tools: { hostRoot: root, waits: { ...DEFAULT_WAITS, socketMs: 0 }, cluster } });
  const reason = { code: "pod-not-on-node", text: "its pod is gone from this node" } as const;
  const action = { finding: FINDING, rank: "csi-node-plugin", steps: [], followUps, reason, lane: "x" } as const;
  return { ...(await runAction(action, { tools, brake: stormBrake() })), asked };
}

describe("follow-ups of a healed action", () => {
  test("no pod is restarted when the socket is not served again in time; the action stays healed", async () => {
    const result = await run([{ kind: "await-socket", path: "/csi.sock" }, KICK]);

    expect(result).toMatchObject({
      outcome: "healed",
      reason: expect.stringContaining("no pod was restarted"),
      asked: 0,
      undone: [{ kind: "await-socket" }, KICK],
    });
    expect(doneInWords(result.action, result.undone)).not.toContain("restarted");
  });

  test("pods that could not be restarted are reported; the action stays healed", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(root, "csi.sock"), resolve));
    onTestFinished(() => void server.close());

    const result = await run([{ kind: "await-socket", path: "/csi.sock" }, KICK]);

    expect(result).toMatchObject({
      outcome: "healed",
      reason: expect.stringMatching(/^attacher: there is no/),
      asked: 1,
      undone: [KICK],
    });
    expect(doneInWords(result.action, result.undone)).not.toContain("restarted");
  });
});
