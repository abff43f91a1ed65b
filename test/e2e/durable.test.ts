import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLoopDisk, unmountBelow, whyNoLoopDisk } from "../../lab/loop-disk.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { type Service, service } from "../../lab/service.ts";
import { tornFiles } from "../../lab/torn-files.ts";
import type { DoctorReport } from "../../src/doctor/doctor-report.ts";
import { startWriteback } from "../../src/durable/sync-entries.ts";
import { scratchDir } from "../durable/scratch-dir.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { UNGHOST } from "./unghost.ts";

const noDisk = await whyNoLoopDisk("ext4");
const noXfs = await whyNoLoopDisk("xfs");
const PODS = 4;
/** Older files must be on disk. */
const OLD_MS = 2000;
const GUARD_MS = 60_000;

const AGENT = ["agent", "--no-kube", "--listen", "", "--scan-every", "24h", "--log-level", "debug"];

describe.skipIf(NO_REAL_NODE !== undefined)("files of CNI plugins", { timeout: HANG_GUARD_MS }, () => {
  const cuts = describe.skipIf(noDisk !== undefined);
  cuts(`in a power cut${noDisk === undefined ? "" : `: skipped, ${noDisk}`}`, () => {
    eachRuntime("are torn without the keeper, and complete with the agent", async (runtime) => {
      const node = await start({ runtime, disk: "ext4" });
      await cutWithPods(node, "without");
      expect(tornFiles(node)).not.toEqual([]);
      rmSync(node.path("/var/lib/cni"), { recursive: true });
      await node.powerOn();
      await keeping(node, AGENT);

      await cutWithPods(node, "with");

      expect(tornFiles(node)).toEqual([]);
      expect(results(node)).toHaveLength(PODS);
    });

    const fileSystems = (["ext4", "xfs"] as const).filter((_, index) => [noDisk, noXfs][index] === undefined);
    test.each(fileSystems)(
      "on %s include their content or are absent once writeback was started",
      async (fileSystem) => {
        const dir = scratchDir();
        onTestFinished(() => unmountBelow(dir));
        const disk = await createLoopDisk(dir, fileSystem);
        // Not by Node: plugins write without a truncation, which would make the file system write at the close.
        execFileSync("sh", ["-c", "printf content >plain && printf content >started"], { cwd: `${dir}/disk` });
        await startWriteback(`${dir}/disk`, ["started"]);
        // A sync of another file commits the names of both.
        execFileSync("sh", ["-c", "echo other >other && sync other"], { cwd: `${dir}/disk` });

        await disk.freeze();
        await disk.remount();

        const contents = ["plain", "started"].map((name) => readFileSync(`${dir}/disk/${name}`, "utf8"));
        expect(contents).toEqual(["", "content"]);
      },
    );

    test("are complete with unghost keep", async () => {
      const node = await start({ disk: "ext4" });
      await keeping(node, ["keep", "-v"]);

      await cutWithPods(node, "kept");

      expect(tornFiles(node)).toEqual([]);
      expect(results(node)).toHaveLength(PODS);
    });
  });

  test("are found again after an overflow of the inotify queue, beside links, FIFOs and re-created directories", async () => {
    const node = await start();
    // In memory, where 20,000 syncs are fast: the test checks that none is missed.
    const keeper = await keeping(node, ["keep", "-v", "--cni-cache-dir", "/run/cni"]);
    const cni = node.livePath("/run/cni");
    const dir = `${cni}/networks/cbr0`;
    mkdirSync(dir, { recursive: true });
    await node.check(["mkfifo", "/run/cni/networks/cbr0/fifo"]);
    symlinkSync("/etc/hostname", `${dir}/link`);
    symlinkSync("/etc", `${cni}/results`);
    writeFileSync(`${dir}/lock`, "");
    await until("the directory is watched", GUARD_MS, () => filesSynced(node) > 0 || undefined);

    // More notifications than the kernel queues, while the keeper cannot read them.
    await node.kill(keeper.pid ?? 0, "STOP");
    for (let count = 0; count < 20_000; count++) writeFileSync(`${dir}/10.88.${count >> 8}.${count & 255}`, "id");
    await node.kill(keeper.pid ?? 0, "CONT");
    await until("20,000 files are synced", GUARD_MS, () => filesSynced(node) > 20_000 || undefined);

    rmSync(dir, { recursive: true });
    mkdirSync(dir, { recursive: true });
    const before = filesSynced(node);
    writeFileSync(`${dir}/10.88.0.2`, "id");
    await until("a file in the new directory is synced", GUARD_MS, () => filesSynced(node) > before || undefined);

    await doctorPrints(node, /^CNI files: 3 directories kept durable, \d+ files synced/);

    await keeper.end("TERM");
    await doctorPrints(node, /no keeper runs/);
    expect(logLines(node).at(-1)).toMatchObject({ msg: "ended" });
    expect(logLines(node).filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  });
});

async function cutWithPods(node: LabNode, name: string): Promise<void> {
  // containerd syncs a container's status, which commits the names of all files so far, and no content.
  await runPods(node, PODS, { name, containers: [{ name: "main" }] });
  await sleep(OLD_MS);
  await node.powerCut();
}

/** The built executable as keeper of the node, after its start. */
async function keeping(node: LabNode, args: readonly string[]): Promise<Service> {
  const running = service(node, "keeper", "/var/log/keeper.log", [UNGHOST, ...args]);
  await running.start();
  const msg = "CNI files are kept durable";
  await until("the keeper has started", GUARD_MS, () => logLines(node).some((line) => line.msg === msg) || undefined);
  return running;
}

/** The same line in the table and in JSON, once the keeper has published its state, which it does every few seconds. */
async function doctorPrints(node: LabNode, line: RegExp): Promise<void> {
  await until(`doctor prints ${line}`, GUARD_MS, async () => {
    const { stdout: json } = await node.exec([UNGHOST, "doctor", "--no-kube", "-o", "json"]);
    const { stdout: table } = await node.exec([UNGHOST, "doctor", "--no-kube"]);
    const { cniFiles } = JSON.parse(json) as DoctorReport;
    const detail = cniFiles?.detail ?? "";
    return (line.test(detail) && table.split("\n").includes(detail)) || undefined;
  });
}

function results(node: LabNode): readonly string[] {
  return readdirSync(node.path("/var/lib/cni/results")).filter((name) => name.startsWith("cbr0-"));
}

interface Line {
  readonly msg: string;
  readonly level: string;
  readonly files?: number;
}

function logLines(node: LabNode): readonly Line[] {
  const lines = readFileSync(node.path("/var/log/keeper.log"), "utf8").split("\n");
  // The last one may be incomplete.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line);
}

function filesSynced(node: LabNode): number {
  return logLines(node).reduce((sum, { files = 0 }) => sum + files, 0);
}
