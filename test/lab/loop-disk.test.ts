import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { type LoopFileSystem, whyNoLoopDisk } from "../../lab/loop-disk.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { CALL, HANG_GUARD_MS, start } from "./real-node.ts";

const WRITE = `
cd /var/lib/cni
mkdir kept
echo content >kept/synced && sync kept/synced kept
echo content >kept/unsynced`;

describe.each(["ext4", "xfs"] as const)(
  "a node's disk on a loop device with %s",
  { timeout: HANG_GUARD_MS },
  (kind) => {
    lossy(kind, "loses what was not synced in a power cut, and keeps the rest", async () => {
      const node = await start({ disk: kind });
      await node.check(["sh", "-c", WRITE]);

      await node.powerCut();

      expect(readFileSync(node.path("/var/lib/cni/kept/synced"), "utf8")).toBe("content\n");
      expect(contentOf(node, "/var/lib/cni/kept", "unsynced")).toBe("");
      await node.powerOn();
      await runPod(node, { name: "after" });
      expect(await node.cri.listPodSandbox(undefined, CALL)).toHaveLength(1);
    });

    lossy(kind, "boots after a power cut while a mount namespace still holds the old file system", async () => {
      const node = await start({ disk: kind });
      const holder = spawn("unshare", ["-m", "--propagation", "private", "sh", "-c", "echo held; exec sleep 1000"]);
      onTestFinished(() => void holder.kill());
      await once(holder.stdout, "data");

      await node.powerCut();
      await node.powerOn();

      expect(await node.cri.listPodSandbox(undefined, CALL)).toEqual([]);
    });

    lossy(kind, "leaves no mount and no loop device behind, whatever state the node is in", async () => {
      const node = await start({ disk: kind });
      await node.powerCut();
      await node.powerOn();
      expect(await traces(node)).not.toEqual([]);

      await node.destroy();

      expect(await traces(node)).toEqual([]);
    });
  },
);

function lossy(kind: LoopFileSystem, title: string, body: () => Promise<void>): void {
  test(title, async ({ skip }) => {
    const why = await whyNoLoopDisk(kind);
    if (why !== undefined) skip(why);
    await body();
  });
}

function contentOf(node: LabNode, dir: string, name: string): string {
  return readdirSync(node.path(dir)).includes(name) ? readFileSync(node.path(`${dir}/${name}`), "utf8") : "";
}

async function traces({ dir }: LabNode): Promise<readonly string[]> {
  const { stdout } = await run(["losetup", "--all"]);
  const lines = [...readFileSync("/proc/self/mountinfo", "utf8").split("\n"), ...stdout.split("\n")];
  return lines.filter((line) => line.includes(dir));
}
