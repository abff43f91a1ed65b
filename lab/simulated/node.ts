import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileNetwork } from "./cni-files.ts";
import { type SimulatedRuntime, startSimulated } from "./runtime.ts";

/** The first boot lies an hour back, so that sandboxes "made earlier" were made in it. */
const FIRST_UPTIME_SECONDS = 3600;
const CLOCK_TICK_MS = 100;

/**
 * A node for machines without root: a directory to be scanned with `--host-root`, and a simulated runtime beside it.
 * Nothing runs on it, so its /proc holds the boot's identity and no process.
 */
export interface SimulatedNode extends SimulatedRuntime {
  readonly root: string;
}

export async function startSimulatedNode(): Promise<SimulatedNode> {
  const root = mkdtempSync(join(tmpdir(), "unghost-sim-"));
  mkdirSync(join(root, "proc/sys/kernel/random"), { recursive: true });
  mkdirSync(join(root, "run/containerd"), { recursive: true });
  let bootedAt = boot(root, Date.now() - FIRST_UPTIME_SECONDS * 1000);
  const clock = setInterval(() => writeUptime(root, bootedAt), CLOCK_TICK_MS);
  clock.unref();
  const runtime = await startSimulated({
    socket: join(root, "run/containerd/containerd.sock"),
    network: fileNetwork(root),
  });
  return {
    ...runtime,
    root,
    powerCut: async () => {
      await runtime.powerCut();
      bootedAt = boot(root, Date.now());
    },
    close: async () => {
      clearInterval(clock);
      await runtime.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function boot(root: string, bootedAt: number): number {
  writeFileSync(join(root, "proc/sys/kernel/random/boot_id"), `${randomUUID()}\n`);
  writeFileSync(join(root, "proc/stat"), `cpu  0 0 0 0 0 0 0 0 0 0\nbtime ${Math.floor(bootedAt / 1000)}\n`);
  writeUptime(root, bootedAt);
  return bootedAt;
}

/** Renamed into place: a reader must never see half of it. */
function writeUptime(root: string, bootedAt: number): void {
  const seconds = ((Date.now() - bootedAt) / 1000).toFixed(2);
  const fresh = join(root, "proc/.uptime");
  writeFileSync(fresh, `${seconds} ${seconds}\n`);
  renameSync(fresh, join(root, "proc/uptime"));
}
