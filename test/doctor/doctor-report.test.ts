import { expect, test } from "vitest";
import {
  absentCheck,
  type DoctorReport,
  missing,
  neededAndMissing,
  optionalCheck,
  passed,
  renderDoctor,
} from "../../src/doctor/doctor-report.ts";

const PLAIN = { colour: false, columns: 200, verbose: true };
const KERNEL_LOG = optionalCheck(missing("kernel log", "/dev/kmsg is not readable", "kernel stalls", "use the host"));

function reportWith(...checks: DoctorReport["checks"]): DoctorReport {
  return {
    apiVersion: "unghost.dev/v1",
    kind: "DoctorReport",
    version: "0.1.0",
    node: "edge-7",
    hostRoot: "/host",
    kernel: "6.1",
    os: "Debian",
    runtime: { name: "containerd", version: "2.3.4", endpoint: "unix:///run/c.sock", reachable: true },
    kubernetes: { source: "api", credentials: "ServiceAccount of this pod" },
    checks,
  };
}

test("what is optional is no failure: in a pod without devices everything needed is there", () => {
  const report = reportWith(passed("read cri", "read"), KERNEL_LOG, absentCheck("multus", "no multus"));

  const text = renderDoctor(report, PLAIN);

  expect(neededAndMissing(report)).toEqual([]);
  expect(text).toMatch(/^OK {2}everything unghost needs is there on edge-7/);
  expect(text).toContain(
    "Optional, and not here\n  kernel log: /dev/kmsg is not readable. Would add: kernel stalls. Use the host.\n",
  );
  expect(text).toContain("Not on this node\n  multus: no multus\n");
  expect(text).not.toContain("Cannot read or do");
});

test("something needed that is missing is", () => {
  const report = reportWith(missing("read cri", "refused", "everything"), KERNEL_LOG);

  expect(neededAndMissing(report).map(({ id }) => id)).toEqual(["read cri"]);
  expect(renderDoctor(report, PLAIN)).toMatch(/^MISSING {2}1 needed check of 2 failed on edge-7/);
});
