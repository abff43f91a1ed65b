import { symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { mountsIn, readMountTables } from "../../src/snapshot/mount-tables.ts";
import { readProcessTable } from "../../src/snapshot/process-table.ts";
import { fill, tempDir } from "./temp-dir.ts";

interface FakeProcess {
  readonly namespace: string;
  readonly mountinfo?: string;
  readonly state?: string;
}

/** A /proc of regular files, for states that a real one cannot show. */
async function tablesOf(processes: Readonly<Record<number, FakeProcess>>) {
  const root = fill(tempDir(), { "proc/uptime": "1000.00 1.00\n" });
  for (const [pid, { namespace, mountinfo, state = "S" }] of Object.entries(processes)) {
    const stat = `${pid} (x) ${state} 1 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`;
    const dir = `proc/${pid}/task/${pid}`;
    fill(root, { [`proc/${pid}/stat`]: stat, [`${dir}/stat`]: stat, [`${dir}/ns/.keep`]: "" });
    if (mountinfo === undefined) fill(root, { [`${dir}/mountinfo/x`]: "" });
    else fill(root, { [`${dir}/mountinfo`]: mountinfo });
    symlinkSync(`mnt:[${namespace}]`, `${root}/${dir}/ns/mnt`);
  }
  const signal = AbortSignal.timeout(10_000);
  return await readMountTables({ root, table: await readProcessTable({ root }), signal });
}

const HOST = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";

describe("mount tables of all processes", () => {
  test("contain each mount namespace once", async () => {
    const source = await tablesOf({
      1: { namespace: "1", mountinfo: HOST },
      20: { namespace: "1", mountinfo: HOST },
      30: { namespace: "2", mountinfo: "40 39 254:3 /sub /data rw - ext4 /dev/vdb rw\n" },
    });

    if (source.status !== "read") throw new Error(source.status);
    expect(source.value.toSorted((one, other) => one.point.localeCompare(other.point))).toMatchObject([
      { pid: expect.any(Number), device: "8:1", root: "/", point: "/", source: "/dev/sda1" },
      { pid: 30, device: "254:3", root: "/sub", point: "/data", source: "/dev/vdb" },
    ]);
  });

  test("skip a process that has ended", async () => {
    const source = await tablesOf({ 1: { namespace: "1", mountinfo: HOST }, 20: { namespace: "2", state: "Z" } });

    expect(source).toMatchObject({ status: "read", value: [{ pid: 1 }] });
  });

  test("fail when one cannot be read", async () => {
    const source = await tablesOf({ 1: { namespace: "1", mountinfo: HOST }, 20: { namespace: "2" } });

    expect(source).toMatchObject({ status: "failed", error: { message: expect.stringContaining("process 20") } });
  });

  test("parse optional fields, and spaces in paths", () => {
    const lines =
      "36 35 98:0 /a\\040b /c\\134d rw,noatime shared:1 master:2 - ext3 /dev/root rw\n\n37 35 0:5 / /e rw - tmpfs none rw";

    expect(mountsIn(lines)).toEqual([
      { device: "98:0", root: "/a b", point: "/c\\d", source: "/dev/root" },
      { device: "0:5", root: "/", point: "/e", source: "none" },
    ]);
  });
});
