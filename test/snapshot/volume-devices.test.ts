import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { absent } from "../../src/host/source.ts";
import { type ProcessTable, readProcessTable } from "../../src/snapshot/process-table.ts";
import { readVolumeDevices } from "../../src/snapshot/volume-devices.ts";
import { fill, isRoot, tempDir } from "./temp-dir.ts";

interface FakeNode {
  /** Block devices by path, as `major:minor`. Nothing opens them, so no driver is needed. */
  readonly devices?: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
  /** The open files of each process: paths of the node, or names without a path such as `socket:[1]`. */
  readonly open?: Readonly<Record<number, readonly string[] | "unreadable">>;
}

function nodeWith({ devices = {}, links = {}, open = {} }: FakeNode): string {
  const root = fill(tempDir(), { "proc/uptime": "1000.00 1.00\n", "dev/null": "" });
  for (const [path, number] of Object.entries(devices)) {
    mkdirSync(dirname(`${root}${path}`), { recursive: true });
    execFileSync("mknod", [`${root}${path}`, "b", ...number.split(":")]);
  }
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(dirname(`${root}${path}`), { recursive: true });
    symlinkSync(target, `${root}${path}`);
  }
  const processes: NonNullable<FakeNode["open"]> = { 1: [], ...open };
  for (const [pid, files] of Object.entries(processes)) {
    const dir = `proc/${pid}`;
    fill(root, { [`${dir}/stat`]: `${pid} (x) S 1 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n` });
    if (files === "unreadable") {
      fill(root, { [`${dir}/fd`]: "no directory" });
      continue;
    }
    mkdirSync(`${root}/${dir}/fd`);
    for (const [fd, file] of files.entries())
      symlinkSync(file.startsWith("/") ? `${root}${file}` : file, `${root}/${dir}/fd/${fd}`);
  }
  return root;
}

async function devicesOf(node: FakeNode, names: readonly string[], signal = AbortSignal.timeout(10_000)) {
  const root = nodeWith(node);
  return await readVolumeDevices({ root, table: await readProcessTable({ root }), names, signal });
}

describe.skipIf(!isRoot)("devices named after a volume (needs root)", () => {
  test.each<[string, FakeNode, string, string]>([
    ["the driver's directory", { devices: { "/dev/longhorn/pvc-0a1b": "8:32" } }, "pvc-0a1b", "8:32"],
    [
      "a udev link, without punctuation",
      {
        devices: { "/dev/nvme1n1": "259:4" },
        links: { "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0abc12": "../../nvme1n1" },
      },
      "vol-0abc12",
      "259:4",
    ],
    [
      "a volume group, through an absolute link",
      { devices: { "/dev/dm-3": "253:3" }, links: { "/dev/vg0/pvc-0a1b": "/dev/dm-3" } },
      "pvc-0a1b",
      "253:3",
    ],
    [
      "a pool of images",
      { devices: { "/dev/rbd0": "251:0" }, links: { "/dev/rbd/pool/csi-vol-77": "../../rbd0" } },
      "csi-vol-77",
      "251:0",
    ],
    ["a minor number above 255", { devices: { "/dev/mapper/pvc-0a1b": "253:300" } }, "pvc-0a1b", "253:300"],
  ])("are found by %s", async (_where, node, name, number) => {
    expect(await devicesOf(node, [name])).toEqual({
      status: "read",
      value: { numbers: [number], openers: [] },
      oddities: [],
    });
  });

  test("are not found by another volume's name, a short one, or a name that is not a block device", async () => {
    const node: FakeNode = {
      devices: { "/dev/longhorn/pvc-0a1b": "8:32", "/dev/data": "8:48" },
      links: { "/dev/disk/by-id/gone-pvc-ffff": "../../sdz", "/dev/disk/by-id/null-pvc-eeee": "../../null" },
    };

    expect(await devicesOf(node, ["pvc-9999", "data", "pvc-ffff", "pvc-eeee"])).toEqual({
      status: "read",
      value: { numbers: [], openers: [] },
      oddities: [],
    });
  });

  test("are open in every process that has the device open, under any path", async () => {
    const source = await devicesOf(
      {
        devices: { "/dev/longhorn/pvc-0a1b": "8:32", "/var/lib/kubelet/plugins/block": "8:32", "/dev/sda": "8:0" },
        links: { "/dev/disk/by-id/scsi-pvc-0a1b": "../../longhorn/pvc-0a1b" },
        open: {
          20: ["/dev/null", "socket:[7]", "/dev/longhorn/pvc-0a1b"],
          30: ["/var/lib/kubelet/plugins/block"],
          40: ["/dev/sda", "/var/log/gone"],
        },
      },
      ["pvc-0a1b"],
    );

    if (source.status !== "read") throw new Error(source.status);
    expect(source.value.numbers).toEqual(["8:32"]);
    expect(source.value.openers.map(({ pid }) => pid).toSorted()).toEqual([20, 30]);
  });

  test("are unknown when the open files of one process cannot be read", async () => {
    const devices = { "/dev/longhorn/pvc-0a1b": "8:32" };

    const source = await devicesOf({ devices, open: { 20: [], 30: "unreadable" } }, ["pvc-0a1b"]);

    expect(source).toMatchObject({ status: "failed", error: { message: expect.stringContaining("process 30") } });
  });

  test("are unknown when the processes were not all read in time, or not at all", async () => {
    const devices = { "/dev/longhorn/pvc-0a1b": "8:32" };
    const names = ["pvc-0a1b"];

    expect(await devicesOf({ devices, open: { 20: [] } }, names, AbortSignal.abort())).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("in time") },
    });
    const table = absent<ProcessTable>("no /proc");
    expect(await readVolumeDevices({ root: nodeWith({}), table, names, signal: AbortSignal.timeout(10_000) })).toBe(
      table,
    );
  });
});
