/**
 * `make dead-node`: scan, heal and agent on a real node with thousands of dead sandboxes, beside crictl. Arguments: the
 * number of sandboxes, containerd's version. Exits 1 if a limit is exceeded.
 */
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ensureCrictl } from "../lab/crictl.ts";
import { copyImage, imageOf, whyNoLoopDisk } from "../lab/loop-disk.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { runPods } from "../lab/pods.ts";
import { until } from "../lab/poll.ts";
import { CONTAINERD_SOCKET } from "../lab/runtime-config.ts";
import { type ContainerdVersion, containerdVersion } from "../lab/runtimes.ts";
import { isMissed, type Result, render } from "./result.ts";
import { measuredIn } from "./scan.ts";

const [count = "2000", chosen = "2.3"] = process.argv.slice(2);
const unghost = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

const MAX_SCAN_SECONDS = 1.5;
const MAX_TIMES_CRICTL = 1.25;
const MAX_AGENT_MB = 80;
/** They run together before a power cut, and a machine has memory for this many shims. */
const AT_ONCE = 200;
const SCANS = 7;
const AGENT_SCANS = 20;
const GUARD_MS = 3_600_000;
const ENDPOINT = ["--runtime-endpoint", `unix://${CONTAINERD_SOCKET}`];
const AGENT_PORT = 20258;

async function main(): Promise<void> {
  const crictl = await ensureCrictl();
  const why = (await whyNoLoopDisk("ext4")) ?? (typeof crictl === "string" ? undefined : crictl.reason);
  if (why !== undefined || typeof crictl !== "string") {
    process.stderr.write(`dead-node cannot run on this machine: ${why}\n`);
    process.exit(77);
  }
  const runtime = containerdVersion(chosen);
  const image = join(tmpdir(), `unghost-dead-node-${process.pid}.img`);
  try {
    const ids = await deadNode(runtime, Number(count), image);
    const onCopy = <T>(use: (node: LabNode) => Promise<T>): Promise<T> => usingCopy(runtime, image, crictl, use);
    for (const result of [await scans(onCopy, crictl), await heals(onCopy, crictl, ids), await agent(onCopy)]) {
      process.stdout.write(render(result));
      if (result.bars.some(isMissed)) process.exitCode = 1;
    }
  } finally {
    await rm(image, { force: true });
  }
}

/** Makes the sandboxes, cuts the power under them, and keeps the disk. Returns their ids. */
async function deadNode(runtime: ContainerdVersion, sandboxes: number, image: string): Promise<readonly string[]> {
  const node = await startNode({ runtime, disk: "ext4" });
  const ids: string[] = [];
  try {
    while (ids.length < sandboxes) {
      const pods = await runPods(node, Math.min(AT_ONCE, sandboxes - ids.length), { name: `dead-${ids.length}` });
      ids.push(...pods.map(({ sandboxId }) => sandboxId));
      await node.check(["sync"]);
      await node.powerCut();
      if (ids.length < sandboxes) await node.powerOn();
    }
    await copyImage(imageOf(node.dir), image);
    return ids;
  } finally {
    await node.destroy();
  }
}

/** The same dead sandboxes each time. */
type OnCopy = <T>(use: (node: LabNode) => Promise<T>) => Promise<T>;

async function usingCopy<T>(
  runtime: ContainerdVersion,
  image: string,
  crictl: string,
  use: (node: LabNode) => Promise<T>,
): Promise<T> {
  const visible = [unghost, crictl].map((path) => dirname(path));
  const node = await startNode({ runtime, disk: { restored: image, fileSystem: "ext4" }, visible });
  try {
    return await use(node);
  } finally {
    await node.destroy();
  }
}

async function scans(onCopy: OnCopy, crictl: string): Promise<Result> {
  const both = "crictl pods, ps -a";
  const cri = [crictl, ...ENDPOINT].join(" ");
  const summaries = await onCopy((node) =>
    measuredIn(node, SCANS, {
      "unghost scan": [unghost, "scan", "--no-kube", ...ENDPOINT],
      "unghost --version": [unghost, "--version"],
      [both]: ["/bin/sh", "-ec", `${cri} pods; ${cri} ps -a`],
    }),
  );
  const seconds = (summaries["unghost scan"]?.minMs ?? Number.POSITIVE_INFINITY) / 1000;
  return {
    title: `scan of a real node with ${count} dead sandboxes, containerd ${chosen}`,
    rows: Object.entries(summaries).map(([name, summary]) => ({ name, summary })),
    bars: [{ name: "scan, fastest, seconds", value: seconds, most: MAX_SCAN_SECONDS }],
    notes: [],
  };
}

async function heals(onCopy: OnCopy, crictl: string, ids: readonly string[]): Promise<Result> {
  const rmp = [crictl, ...ENDPOINT, "--timeout", "130s", "rmp", "--force", ...ids];
  const seconds = {
    "unghost heal": await onCopy((node) => emptied(node, [unghost, "heal", "--yes", "--no-kube", "--min-age", "0s"])),
    "crictl rmp --force": await onCopy((node) => emptied(node, rmp)),
  };
  const value = seconds["unghost heal"] / seconds["crictl rmp --force"];
  return {
    title: `removal of ${count} dead sandboxes`,
    rows: [],
    bars: [{ name: "heal / crictl rmp --force", value, most: MAX_TIMES_CRICTL }],
    notes: Object.entries(seconds).map(([name, one]) => `${name}: ${one.toFixed(1)} s`),
  };
}

async function emptied(node: LabNode, command: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const { code, stderr } = await node.exec(command, { timeoutMs: GUARD_MS });
  const seconds = (performance.now() - startedAt) / 1000;
  const left = await node.cri.listPodSandbox(undefined, { timeoutMs: GUARD_MS });
  if (code !== 0 || left.length > 0)
    throw new Error(`${command.slice(0, 5).join(" ")} ended with ${code} and left ${left.length}: ${stderr}`);
  return seconds;
}

/** The agent reports and heals nothing. */
async function agent(onCopy: OnCopy): Promise<Result> {
  const value = await onCopy(async (node) => {
    const flags = ["--no-kube", "--observe-only", "--scan-every", "1s", "--listen", `127.0.0.1:${AGENT_PORT}`];
    const command = [unghost, "agent", ...flags].join(" ");
    await node.check(["sh", "-c", `setsid ${command} </dev/null >/var/log/agent.log 2>&1 &`]);
    return await until(`the agent has scanned ${AGENT_SCANS} times`, GUARD_MS, async () => {
      const { stdout } = await node.exec(["curl", "-sS", `http://127.0.0.1:${AGENT_PORT}/metrics`]);
      const numberOf = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(stdout)?.[1] ?? 0);
      if (numberOf("unghost_scan_duration_seconds_count") < AGENT_SCANS) return undefined;
      return numberOf("process_resident_memory_bytes") / 1024 ** 2;
    });
  });
  return {
    title: `the agent beside ${count} dead sandboxes, which it does not heal`,
    rows: [],
    bars: [{ name: `memory after ${AGENT_SCANS} scans, MB`, value, most: MAX_AGENT_MB }],
    notes: [],
  };
}

await main();
