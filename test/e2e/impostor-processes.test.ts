import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { unknownId } from "../../lab/faults/host-local.ts";
import { hangingDel, hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { finishedPod, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, play, start } from "../lab/real-node.ts";
import { heal } from "./healed-node.ts";
import { UNPRIVILEGED } from "./impostor.ts";
import { AT_ONCE, named, scan } from "./scanned-node.ts";

/** A process with the environment of a plugin, but nothing else of one. */
async function pretendPlugin(node: LabNode, id: string, enter = "", user?: number): Promise<number> {
  const env = `CNI_COMMAND=DEL CNI_CONTAINERID=${id} CNI_IFNAME=eth0 CNI_NETNS=/x`;
  const script = `${enter} export ${env}; setsid sleep 100000 </dev/null >/dev/null 2>&1 &`;
  await node.check(["sh", "-c", script], user === undefined ? {} : { user });
  return await until("the pretended plugin runs", HANG_GUARD_MS, () => sleeperOf(node, id));
}

function sleeperOf(node: LabNode, id: string): number | undefined {
  return processesOf(node).find(
    ({ command, environment }) => command[0] === "sleep" && environment.get("CNI_CONTAINERID") === id,
  )?.pid;
}

/** Shell that joins the cgroups of a sandbox, or cgroups of any name created below them. */
function joinCgroupOf(id: string, below = ""): string {
  return `
    pid=$(grep -l ${id} /proc/[0-9]*/cgroup | head -1 | cut -d/ -f3)
    [ -n "$pid" ] || exit 9
    while IFS=: read -r number names path; do
      case "$path" in *${id}*) ;; *) continue ;; esac
      first="\${names%%,*}"; first="\${first#name=}"
      dir="/sys/fs/cgroup\${first:+/$first}$path${below}"
      mkdir -p "$dir"; echo 0 >"$dir/cgroup.procs"
    done </proc/$pid/cgroup
  `;
}

describe.skipIf(NO_REAL_NODE !== undefined)("a forged environment", () => {
  test.each<readonly [string, number | undefined]>([
    ["of root", undefined],
    ["of an ordinary user", UNPRIVILEGED],
  ])("a process %s with a plugin's environment is neither found nor ended", async (_who, user) => {
    const node = await start();
    const dead = await finishedPod(node, { name: "done" });
    const pids = [
      await pretendPlugin(node, dead.sandboxId, "", user),
      await pretendPlugin(node, unknownId(), "", user),
    ];

    const { report } = await heal(node, AT_ONCE);

    expect(named(report)).toEqual([]);
    expect(pids.filter((pid) => !existsSync(node.livePath(`/proc/${pid}`)))).toEqual([]);
  });

  test("a process in the cgroup of a Ready pod, with its id, is neither found nor ended", async () => {
    const node = await start();
    const pod = await runPod(node, { name: "busy" });
    const pid = await pretendPlugin(node, pod.sandboxId, joinCgroupOf(pod.sandboxId));

    const { report } = await heal(node, AT_ONCE);

    expect(named(report)).toEqual([]);
    expect(existsSync(node.livePath(`/proc/${pid}`))).toBe(true);
  });

  eachRuntime("a DEL that really hangs is found", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "stuck" });
    await hangingDel(node, pod);
    play(async () => {
      await node.cri.stopPodSandbox(pod.sandboxId, { timeoutMs: 1000 }).catch(() => undefined);
    });
    await until("the DEL hangs", HANG_GUARD_MS, () => pluginOf(node, "DEL", "stuck"));

    const report = await scan(node, AT_ONCE);

    // By its sandbox, not its pid: the stop is retried, and each retry has another plugin process.
    const found = report.findings.filter(({ class: name }) => name === "del-timeout-killed");
    expect(JSON.stringify(found)).toContain(pod.sandboxId);
  });

  eachRuntime("an ADD that really hangs is found", async (runtime) => {
    const node = await start({ runtime });
    const hung = await hungAdd(node, { name: "stuck" });

    const report = await scan(node, AT_ONCE);

    expect(named(report).join()).toContain(hung.sandboxId);
  });
});

describe.skipIf(NO_REAL_NODE !== undefined)("a forged name", () => {
  test.each<readonly [string, number | undefined, string]>([
    ["of an ordinary user", UNPRIVILEGED, "/run/containerd/containerd.sock"],
    ["that names another containerd", undefined, "/run/other/containerd.sock"],
  ])("a process %s named like the shim of a ghost does not keep it alive", async (_what, user, address) => {
    const node = await start();
    const pod = await runPod(node, { name: "ghost", containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    expect(named(await scan(node, AT_ONCE))).toEqual([expect.stringContaining(pod.sandboxId)]);

    const dir = user === undefined ? "/root" : "/tmp";
    const copy = `cp /bin/sh ${dir}/containerd-shim-runc-v2 && printf 'sleep 100000\\nexit\\n' >${dir}/wait`;
    await node.check(["sh", "-c", copy], user === undefined ? {} : { user });
    const shim = `${dir}/containerd-shim-runc-v2 ${dir}/wait -namespace k8s.io -id ${pod.sandboxId} -address ${address}`;
    await node.check(["sh", "-c", `setsid ${shim} </dev/null >/dev/null 2>&1 &`], user === undefined ? {} : { user });

    expect(named(await scan(node, AT_ONCE))).toEqual([expect.stringContaining(pod.sandboxId)]);
  });

  test("a cgroup below a pod's own, named after a ghost, does not keep it alive", async () => {
    const node = await start();
    const ghost = await runPod(node, { name: "ghost", containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    const pod = await runPod(node, { name: "busy" });
    const nest = joinCgroupOf(pod.sandboxId, `/${ghost.sandboxId}`);
    await node.check(["sh", "-c", `${nest} setsid sleep 100000 </dev/null >/dev/null 2>&1 &`]);

    const report = await scan(node, AT_ONCE);

    expect(named(report)).toEqual([expect.stringContaining(ghost.sandboxId)]);
  });
});
