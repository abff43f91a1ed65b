import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileNetwork } from "./cni-files.ts";
import { bootProc, writeUptime } from "./proc-files.ts";
import { type SimulatedOptions, type SimulatedRuntime, startSimulated } from "./runtime.ts";

/** The first boot was an hour ago, so that sandboxes "created earlier" belong to it. */
const FIRST_UPTIME_SECONDS = 3600;
const CLOCK_TICK_MS = 100;

/**
 * A node for machines without root: a directory for `--host-root`, and a simulated runtime beside it. Nothing runs on
 * it, so its /proc contains only the boot's identity and an init.
 */
export interface SimulatedNode extends SimulatedRuntime {
  readonly root: string;
}

export async function startSimulatedNode(options: Pick<SimulatedOptions, "version"> = {}): Promise<SimulatedNode> {
  const root = mkdtempSync(join(tmpdir(), "unghost-sim-"));
  // Not group-writable, whatever the umask, because unghost refuses a socket that others could replace.
  mkdirSync(join(root, "run/containerd"), { recursive: true, mode: 0o755 });
  let bootedAt = Date.now() - FIRST_UPTIME_SECONDS * 1000;
  bootProc(root, bootedAt);
  const clock = setInterval(() => writeUptime(root, bootedAt), CLOCK_TICK_MS);
  clock.unref();
  const runtime = await startSimulated({
    socket: join(root, "run/containerd/containerd.sock"),
    network: fileNetwork(root),
    ...options,
  });
  return {
    ...runtime,
    root,
    powerCut: async () => {
      await runtime.powerCut();
      bootedAt = Date.now();
      bootProc(root, bootedAt);
    },
    close: async () => {
      clearInterval(clock);
      await runtime.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
