import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { ActionResult } from "../../src/heal/execution/run-action.ts";
import { progress } from "../../src/report/progress.ts";
import { actionOn } from "../agent/planned-action.ts";

const LOGS = "/var/lib/unghost/quarantine/0mwj4h7he-ofn0";

function shown(result: Partial<ActionResult>, screenColumns?: number): string {
  let written = "";
  const terms = screenColumns === undefined ? {} : { screenColumns };
  const lines = progress({ colour: true, write: (text) => void (written += text), ...terms });
  lines.report({ action: HEAL, outcome: "healed", seconds: 0.23, ...result });
  return stripVTControlCharacters(written);
}

const pod = { namespace: "shop", name: "web-10", uid: "u", attempt: 0 };
const made = actionOn("a");
const HEAL = {
  ...made,
  finding: {
    ...made.finding,
    class: "libcni-result-cache-corrupt",
    subject: { type: "sandbox", sandboxId: "a".repeat(64), name: "n", pod },
  },
  steps: [
    { kind: "quarantine-file", path: "/var/lib/cni/results/x" },
    { kind: "remove-sandbox", sandboxId: "a".repeat(64) },
  ],
} as unknown as ActionResult["action"];

const WHOLE = `healed   shop/web-10  libcni-result-cache-corrupt: moved its broken or stale cache file to quarantine, removed the sandbox (0.2s); logs saved to ${LOGS}\n`;

describe("one line a healed finding", () => {
  test.each([
    ["in a pipe", undefined, WHOLE],
    ["on a wide screen", 200, WHOLE],
    [
      "on one without room for class and directory",
      130,
      "healed   shop/web-10: moved its broken or stale cache file to quarantine, removed the sandbox (0.2s); logs 0mwj4h7he-ofn0\n",
    ],
    ["on 80 columns", 80, "healed   shop/web-10: quarantined, removed (0.2s); logs 0mwj4h7he-ofn0\n"],
  ])("%s", (_where, columns, line) => {
    expect(shown({ logsSavedTo: LOGS }, columns)).toBe(line);
  });

  test("leaves out a step that was not needed", () => {
    const undone = HEAL.steps.slice(0, 1);

    expect(shown({ logsSavedTo: LOGS, undone }, 68)).toBe(
      "healed   shop/web-10: removed (0.2s); logs 0mwj4h7he-ofn0\n",
    );
  });

  test("wraps a failure, and leaves nothing of it out", () => {
    const reason = "StopPodSandbox: the plugin did not answer within 10s, and the sandbox is still listed";

    const text = shown({ outcome: "failed", reason }, 60);

    expect(text.replaceAll(/\s+/g, " ")).toBe(`failed shop/web-10 libcni-result-cache-corrupt: ${reason} (0.2s) `);
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(60);
  });
});
