import { expect, test } from "vitest";
import { checkCpuShare } from "../../src/doctor/host.ts";
import { fill, tempDir } from "../node/temp-dir.ts";

const AGENT = { POD_UID: "0a0a0a0a" };

test.each<readonly [string, Record<string, string>, { status: string; detail: string | RegExp }]>([
  ["100m on cgroup v1", { "cpu/cpu.shares": "102\n" }, { status: "ok", detail: "cpu.shares 102" }],
  ["10m on cgroup v1", { "cpu,cpuacct/cpu.shares": "10\n" }, { status: "missing", detail: /^cpu.shares 10,/ }],
  ["100m on cgroup v2", { "cpu.weight": "4\n" }, { status: "ok", detail: "cpu.weight 4" }],
  ["10m on cgroup v2", { "cpu.weight": "1\n" }, { status: "missing", detail: /^cpu.weight 1,/ }],
])("reports the share of the agent's pod: %s", (_request, files, { status, detail }) => {
  const [check] = checkCpuShare({ env: AGENT, cgroups: fill(tempDir(), files) });

  expect(check).toMatchObject({ id: "cpu request", status });
  expect(check?.detail).toMatch(detail);
});

test("a small request names what to set", () => {
  const [check] = checkCpuShare({ env: AGENT, cgroups: fill(tempDir(), { "cpu/cpu.shares": "2\n" }) });

  expect(check).toMatchObject({
    neededFor: "syncing CNI files within a second on a busy node",
    next: "Set resources.requests.cpu to 100m.",
  });
});

test("is not asked outside of the agent's pod, nor where no controller is seen", () => {
  expect(checkCpuShare({ env: {}, cgroups: fill(tempDir(), { "cpu/cpu.shares": "2\n" }) })).toEqual([]);
  expect(checkCpuShare({ env: AGENT, cgroups: tempDir() })).toEqual([]);
});
