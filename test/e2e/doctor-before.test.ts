import { describe, expect } from "vitest";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { UNGHOST } from "./unghost.ts";

interface Answer {
  readonly code: number;
  readonly survives: string;
  readonly stops: readonly string[];
}

async function before(node: LabNode, restart: string): Promise<Answer> {
  const ran = await node.exec([UNGHOST, "doctor", "--before", restart, "--no-kube", "-o", "json"], {
    timeoutMs: HANG_GUARD_MS,
  });
  const { survives, hazards } = JSON.parse(ran.stdout || `"${ran.stderr}"`);
  const stops = hazards.flatMap(({ level, id }: { level: string; id: string }) => (level === "stops" ? [id] : []));
  return { code: ran.code ?? -1, survives, stops };
}

const SURVIVES = { code: 0, survives: "yes", stops: [] };

describe.skipIf(NO_REAL_NODE !== undefined)("doctor --before", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("is right on a node that survives its restart, and on one that does not", async (runtime) => {
    const node = await start({ runtime });
    await runPod(node, { name: "web-0", containers: [{ name: "main" }] });

    expect(await before(node, "runtime")).toEqual(SURVIVES);
    expect(await before(node, "reboot")).toEqual(SURVIVES);
    await node.stopRuntime();
    await node.startRuntime();

    const pod = await runPod(node, { name: "web-1" });
    await duplicateRecord(node, pod);
    expect(await before(node, "runtime")).toEqual({
      code: 1,
      survives: "no",
      stops: ["recover-duplicate-sandbox-name"],
    });
    expect(await before(node, "cni")).toEqual(SURVIVES);
    await node.stopRuntime();
    await expect(node.startRuntime()).rejects.toThrow();
  });
});
