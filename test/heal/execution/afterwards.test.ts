import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Step } from "../../../src/evidence/step.ts";
import { uninterrupted } from "../../../src/heal/execution/interruption.ts";
import type { NodeTools } from "../../../src/heal/execution/node-tools.ts";
import { type ActionSurroundings, runAction } from "../../../src/heal/execution/run-action.ts";
import { doneInWords } from "../../../src/report/done-words.ts";
import { FINDING } from "../workshop.ts";

const KICK: Step = { kind: "kick-pod", namespace: "default", name: "attacher", uid: "1", node: "n1" };

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "after-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function run(afterwards: readonly Step[]) {
  let asked = 0;
  const tools = {
    hostRoot: root,
    waits: { lookMs: 10_000, socketMs: 0 },
    sleep: () => Promise.resolve(),
    interruption: uninterrupted(),
    cluster: () => {
      asked++;
      return Promise.resolve(undefined);
    },
  };
  const around = { tools: tools as unknown as NodeTools } as ActionSurroundings;
  const reason = { code: "pod-not-on-node" } as const;
  const action = { finding: FINDING, rank: "csi-node-plugin", steps: [], afterwards, reason, lane: "x" } as const;
  return { ...(await runAction(action, around)), asked };
}

describe("what follows a healed action", () => {
  test("nobody is restarted where the socket does not come back in time, and it stays healed", async () => {
    const result = await run([{ kind: "await-socket", path: "/csi.sock" }, KICK]);

    expect(result).toMatchObject({
      outcome: "healed",
      reason: expect.stringContaining("no pod was restarted"),
      asked: 0,
      undone: [{ kind: "await-socket" }, KICK],
    });
    expect(doneInWords(result.action, result.undone)).not.toContain("restarted");
  });

  test("with the socket served again, what could not be restarted is said, and it stays healed", async () => {
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
