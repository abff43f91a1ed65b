import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { readMultusDaemon } from "../../src/node/multus-daemon.ts";
import { readProcessTable } from "../../src/node/process-table.ts";
import { MULTUS } from "../support/snapshot-builder.ts";
import { fill, tempDir } from "./temp-dir.ts";

const SOCKET = "/run/multus/multus.sock";
const CPU = "sys/fs/cgroup/multus";
const stat = (periods: number, throttled: number) => `usage_usec 1\nnr_periods ${periods}\nnr_throttled ${throttled}\n`;

/** Throttled for most of its life. Returns the percentage that is measured while its counters change. */
async function measured(change: { readonly periods: number; readonly throttled: number }, shims: number) {
  const root = fill(tempDir(), {
    "proc/uptime": "1000.00 1.00\n",
    "proc/1/net/unix": "",
    "run/multus/.keep": "",
    [`${CPU}/cpu.max`]: "10000 100000\n",
    [`${CPU}/cpu.stat`]: stat(1000, 900),
  });
  const comms = ["init", "multus-daemon", ...Array.from({ length: shims }, () => "multus-shim")];
  for (const [index, comm] of comms.entries()) {
    fill(root, {
      [`proc/${index + 1}/stat`]: `${index + 1} (${comm}) S 1 1 1 0 -1 256 1 2 3 4 5 6 7 8 20 0 1 0 50000 9\n`,
      [`proc/${index + 1}/status`]: "Uid:\t0\t0\t0\t0\n",
      [`proc/${index + 1}/cgroup`]: "0::/multus\n",
      [`proc/${index + 1}/mountinfo`]: "1 0 8:1 / / rw - ext4 /dev/a rw\n",
    });
  }
  const server = createServer((_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(`${root}${SOCKET}`, resolve));
  onTestFinished(() => void server.close());

  const multus = { ...MULTUS.multus, thick: true, socket: SOCKET };
  const reading = readMultusDaemon({ root, multus, table: await readProcessTable({ root }) });
  await sleep(250);
  writeFileSync(`${root}/${CPU}/cpu.stat`, stat(1000 + change.periods, 900 + change.throttled));
  return (await reading)?.cpu;
}

test.each([
  ["it is throttled all the time", { periods: 5, throttled: 5 }, 1, 100],
  ["its delegates wait for something else", { periods: 1, throttled: 0 }, 1, 0],
  ["it woke up once and was throttled then", { periods: 1, throttled: 1 }, 1, 20],
  ["no call waits for it", { periods: 5, throttled: 5 }, 0, 0],
])(
  "the throttling of the multus daemon is that of now, not of its whole life: %s",
  async (_, change, shims, throttledPercent) => {
    expect(await measured(change, shims)).toEqual({ milliCpu: 100, throttledPercent });
  },
);
