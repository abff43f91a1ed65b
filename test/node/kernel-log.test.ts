import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readKernelLog } from "../../src/node/kernel-log.ts";
import { fill, tempDir } from "./temp-dir.ts";

const signal = AbortSignal.timeout(60_000);

function readHere(records: string) {
  return readKernelLog({ root: fill(tempDir(), { "dev/kmsg": records }), signal });
}

/** Records in the format of /dev/kmsg. */
function ring(texts: readonly string[], first = 0): string {
  return texts
    .map((text, index) => `6,${first + index},${(index + 1) * 1_500_000},-;${text}\n SUBSYSTEM=net\n`)
    .join("");
}

const none = { count: 0 };

describe("the kernel log", () => {
  test.each([
    ["stalls", "rcu: INFO: rcu_sched self-detected stall on CPU"],
    ["stalls", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"],
    ["stalls", "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-...D } 21 jiffies"],
    ["stalls", "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/u4:2:313]"],
    ["hungTasks", "INFO: task containerd-shim:4711 blocked for more than 122 seconds."],
    ["hungTasks", "INFO: task kworker/u8:2:313 blocked for more than 120 seconds."],
    ["netdeviceWaits", "unregister_netdevice: waiting for veth1b2c to become free. Usage count = 2"],
  ])("counts %s: %s", async (kind, text) => {
    const source = await readHere(ring(["eth0: link becomes ready", text, text]));

    const expected = { stalls: none, hungTasks: none, netdeviceWaits: none, sinceBoot: true };
    expect(source).toMatchObject({ status: "read", value: { ...expected, [kind]: { count: 2, last: text } } });
  });

  test("ignores ordinary lines", async () => {
    const source = await readHere(
      ring(["rcu: Hierarchical RCU implementation.", "rcu: RCU calculated value of delay is 25 jiffies.", "task done"]),
    );

    expect(source).toMatchObject({ value: { stalls: none, hungTasks: none, netdeviceWaits: none } });
  });

  test("reports counts as a minimum when the ring buffer has wrapped", async () => {
    expect(await readHere(ring(["x"], 81_650))).toMatchObject({ value: { sinceBoot: false } });
  });

  test("tolerates invalid records, and records cut at any byte", async () => {
    const long = `6,0,1,-;${"x".repeat(20_000)}`;
    const source = await readHere(
      `garbage\n,,;\n\u0000\n${long}\n${ring(["rcu_sched detected stalls on CPUs/tasks: {"], 1)}`,
    );

    expect(source).toMatchObject({ value: { stalls: { count: 1 } } });
  });

  test("does not read a flood to its end", async () => {
    const hung = "INFO: task a:1 blocked for more than 120 seconds.";
    const source = await readHere(ring(Array.from({ length: 40_000 }, () => hung)));

    if (source.status !== "read") throw new Error("it was not read");
    expect(source.value.hungTasks.count).toBeGreaterThan(1000);
    expect(source.value.hungTasks.count).toBeLessThan(40_000);
  });

  test("is absent when /dev/kmsg does not exist or is something else", async () => {
    const linked = tempDir();
    mkdirSync(join(linked, "dev"));
    symlinkSync("/etc/passwd", join(linked, "dev/kmsg"));
    const directory = tempDir();
    mkdirSync(join(directory, "dev/kmsg"), { recursive: true });

    for (const root of [tempDir(), linked, directory]) {
      expect((await readKernelLog({ root, signal })).status).toBe("absent");
    }
  });
});
