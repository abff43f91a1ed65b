import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import type { CommandResult } from "../../lab/command.ts";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { leakedNetns } from "../../lab/faults/leaked-netns.ts";
import type { LabNode } from "../../lab/node.ts";
import type { DoctorReport } from "../../src/doctor/doctor-report.ts";
import { CAPABILITIES } from "../../src/doctor/host.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, cniFiles } from "./healed-node.ts";
import { reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const validate = new Ajv2020({ validateFormats: false }).compile<DoctorReport>(
  JSON.parse(readFileSync("docs/schema/doctor-report.v1.json", "utf8")),
);

function doctorReport({ stdout, stderr }: CommandResult): DoctorReport {
  const report: unknown = JSON.parse(stdout || `"${stderr}"`);
  if (!validate(report)) throw new Error(`not as published: ${JSON.stringify(validate.errors)}`);
  return report;
}

const idsOf = ({ checks }: DoctorReport, status: string) =>
  checks.filter((check) => check.status === status).map(({ id }) => id);

/**
 * A container like that of `kubectl debug node --profile=sysadmin`: its own root directory without any program of the
 * node, the node's root at /host, the node's processes, every capability.
 */
const AS_DEBUG_POD = `set -e
mkdir -p /run/debug && mount -t tmpfs none /run/debug && cd /run/debug
mkdir -p host old proc dev lib lib64 usr/lib tmp && : >unghost
mount --rbind / host && mount --make-rslave host && mount --rbind /proc proc && mount --rbind /dev dev && mount --bind "$1" unghost
for dir in lib lib64 usr/lib; do [ ! -d /$dir ] || mount --bind /$dir $dir; done
shift
pivot_root . old && cd / && /host/usr/bin/umount --lazy /old
exec /host/usr/bin/setpriv $DROP /unghost "$@"`;

function inDebugPod(node: LabNode, args: readonly string[], drop = ""): Promise<CommandResult> {
  const command = ["unshare", "--mount", "--propagation=slave", "sh", "-c", AS_DEBUG_POD, "sh", UNGHOST, ...args];
  return node.exec(["env", `DROP=${drop}`, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", ...command], {
    timeoutMs: HANG_GUARD_MS,
  });
}

async function healWithout(node: LabNode, capability: string): Promise<NodeReport> {
  const command = ["heal", "--yes", ...AT_ONCE, "-o", "json"];
  return reportOf(await inDebugPod(node, command, `--bounding-set=-${capability}`));
}

describe.skipIf(NO_REAL_NODE !== undefined)(
  "in a container with the node's root at /host",
  { timeout: HANG_GUARD_MS },
  () => {
    test("doctor, scan and heal find the node on their own and need no program of the image", async () => {
      const node = await start();
      await leakedLease(node, "10.88.200.7");
      const { path = "" } = await leakedNetns(node);

      const examined = doctorReport(await inDebugPod(node, ["doctor", "--no-kube", "-o", "json"]));
      const scanned = reportOf(await inDebugPod(node, ["scan", ...AT_ONCE, "-o", "json"]));
      const planned = await inDebugPod(node, ["heal", "--dry-run", ...AT_ONCE]);
      const healed = reportOf(await inDebugPod(node, ["heal", "--yes", ...AT_ONCE, "-o", "json"]));

      expect(examined).toMatchObject({ hostRoot: "/host", runtime: { reachable: true } });
      expect(idsOf(examined, "missing")).toEqual([]);
      expect(scanned.findings.map((finding) => finding.class).toSorted()).toEqual([
        "hostlocal-ip-leak-after-reboot",
        "netns-and-veth-leak",
      ]);
      expect([planned.code, planned.stdout]).toEqual([1, expect.stringContaining("netns-and-veth-leak")]);
      expect(healed.actions?.map(({ outcome, reason }) => [outcome, reason])).toEqual([
        ["healed", undefined],
        ["healed", undefined],
      ]);
      expect(cniFiles(node).filter((file) => file.includes("10.88.200.7"))).toEqual([]);
      expect(await node.check(["cat", "/proc/self/mountinfo"])).not.toContain(path);
      // The journal is the node's: a later run there can undo.
      expect((await node.exec([UNGHOST, "history"])).stdout).toContain("10.88.200.7");
    });

    test("each capability is needed: doctor names the missing one, and what needs it is not done", async () => {
      const node = await start();
      for (const { name, neededFor } of CAPABILITIES) {
        const drop = `--bounding-set=-${name.toLowerCase()}`;

        const result = await inDebugPod(node, ["doctor", "--no-kube", "-o", "json"], drop);

        const missing = doctorReport(result).checks.find(({ id }) => id === `capability ${name}`);
        expect([result.code, missing]).toEqual([1, expect.objectContaining({ status: "missing", neededFor })]);
      }

      await leakedLease(node, "10.88.200.7");
      const { path = "" } = await leakedNetns(node);
      const unmounting = await healWithout(node, "sys_admin");
      expect(unmounting.actions).toContainEqual(
        expect.objectContaining({ outcome: "failed", reason: expect.stringContaining(path) }),
      );
      expect(await node.check(["ls", "/run/netns"])).toContain(basename(path));
      // Without it, processes in a namespace are not visible: nothing is proven.
      const proving = await healWithout(node, "sys_ptrace");
      expect((proving.actions ?? []).filter(({ outcome }) => outcome === "healed")).toEqual([]);
      expect(proving.verdict).not.toBe("healthy");
    });
  },
);

describe.skipIf(NO_REAL_NODE !== undefined)("risks", { timeout: HANG_GUARD_MS }, () => {
  test("doctor names them with the line that ends each, and still succeeds", async () => {
    const runtimeConfig = '[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/opt/other-cni"\n';
    const node = await start({ runtimeConfig });
    const multus = { cniVersion: "0.3.1", name: "multus", type: "multus", kubeconfig: "/etc/cni/net.d/gone" };
    await node.writeFile("/etc/cni/net.d/00-multus.conf", JSON.stringify(multus));
    await node.check(["cp", "-r", "/opt/cni/bin", "/opt/other-cni"]);

    const result = await node.exec([UNGHOST, "doctor", "--no-kube", "-o", "json"]);
    const { risks = [] } = doctorReport(result);
    const table = await node.exec([UNGHOST, "doctor", "--no-kube"]);

    expect([result.code, table.code]).toEqual([0, 0]);
    expect(risks.map(({ id }) => id)).toEqual(
      expect.arrayContaining([
        "runtime out of support",
        "containerd bin_dir",
        "stale CNI configuration in front",
        "mixed cniVersion",
        "inotify instances",
      ]),
    );
    expect(risks.find(({ id }) => id === "containerd bin_dir")?.end).toContain('bin_dirs = ["/opt/other-cni"]');
    expect(table.stdout).toContain("\nRisks\n");
    expect(table.stdout).toContain("mv /etc/cni/net.d/00-multus.conf");
  });
});

test("doctor without rights lists everything that cannot be read with the next step", {
  timeout: HANG_GUARD_MS,
}, async () => {
  const node = await simulatedNode();

  const table = await unghost(["doctor", "--no-kube", ...node.where]);
  const json = doctorReport(await unghost(["doctor", "--no-kube", "-o", "json", ...node.where]));

  expect([table.code, table.stdout]).toEqual([1, expect.stringContaining("Cannot read or do")]);
  expect(json.checks.filter(({ status }) => status === "missing").every(({ neededFor }) => neededFor)).toBe(true);
  expect(idsOf(json, "ok")).toContain("read cri");
});
