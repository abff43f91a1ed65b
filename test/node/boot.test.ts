import { describe, expect, test } from "vitest";
import { readBoot } from "../../src/node/process-table.ts";
import { fill, tempDir } from "./temp-dir.ts";

const BOOT_ID = "proc/sys/kernel/random/boot_id";

describe("readBoot", () => {
  test("returns a boot id and an uptime on this machine", () => {
    expect(readBoot({ root: "/", now: new Date() })).toMatchObject({
      status: "read",
      value: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), uptimeSeconds: expect.any(Number) },
    });
  });

  test("computes the boot time from wall clock and uptime", () => {
    const root = fill(tempDir(), { [BOOT_ID]: "abc\n", "proc/uptime": "60.50 1.00\n" });

    expect(readBoot({ root, now: new Date(100_000) })).toMatchObject({
      value: { id: "abc", uptimeSeconds: 60.5, startedAt: new Date(39_500) },
    });
  });

  test("uses the clock of processes when /proc/uptime is the age of a container", () => {
    const stat = "9 (unghost) S 1 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 500000 9\n";
    const root = fill(tempDir(), { [BOOT_ID]: "abc\n", "proc/uptime": "60.50 1.00\n", "proc/self/stat": stat });

    const source = readBoot({ root, now: new Date() });

    expect(source.status === "read" && source.value.uptimeSeconds).toBeGreaterThanOrEqual(5000);
  });

  test.each([
    ["no boot id", { "proc/uptime": "1 1" }],
    ["an empty boot id", { [BOOT_ID]: "\n", "proc/uptime": "1 1" }],
    ["no uptime", { [BOOT_ID]: "abc" }],
    ["an invalid uptime", { [BOOT_ID]: "abc", "proc/uptime": "soon" }],
  ])("%s fails with the next step", (_what, files) => {
    expect(readBoot({ root: fill(tempDir(), files), now: new Date() })).toMatchObject({
      status: "failed",
      error: { next: expect.stringContaining("/proc") },
    });
  });
});
