import { existsSync } from "node:fs";
import { describe, expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { type LabPod, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectAlive, expectGone, heal } from "./healed-node.ts";
import { UNPRIVILEGED } from "./impostor.ts";

const NO_WAITING = [...AT_ONCE, "--inflight-grace", "0s"] as const;
const SHIM = "/var/claims/containerd-shim-runc-v2";

const inEnvironment = (id: string) => `CNI_COMMAND=DEL CNI_CONTAINERID=${id} CNI_IFNAME=eth0 CNI_NETNS=/run/netns/x`;
const asShim = (id: string) => `${SHIM} -namespace k8s.io -id ${id} -address /run/containerd/containerd.sock`;

describe.skipIf(NO_REAL_NODE !== undefined)("forged processes", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("a process with CNI's variables is not killed as a plugin", async (runtime) => {
    const node = await start({ runtime });
    const web = await runPod(node, { name: "web" });
    const stopped = await runPod(node, { name: "stopped" });
    await node.cri.stopPodSandbox(stopped.sandboxId, { timeoutMs: 60_000 });
    const claimed = [web, stopped].map(({ sandboxId }) => inEnvironment(sandboxId));
    const inPod = await runPod(node, {
      name: "claims",
      containers: claimed.map((words, index) => ({
        name: `c${index}`,
        command: ["sh", "-c", `${words} exec sleep 100000${index}`],
      })),
    });
    for (const [index, words] of claimed.entries()) {
      await background(node, `env ${words} sleep 200000${index}`, UNPRIVILEGED);
      await background(node, `env ${words} sleep 300000${index}`);
    }
    const claims = await sleepers(node, 6);

    const { report } = await heal(node, NO_WAITING);

    expect(report.actions?.filter(({ finding }) => finding.startsWith("del-timeout-killed"))).toEqual([]);
    expect(claims.filter((pid) => !existsSync(node.livePath(`/proc/${pid}`)))).toEqual([]);
    await expectAlive(node, { ready: [web, inPod], kept: [stopped] });
  });

  eachRuntime("neither a shim's name nor its own cgroup makes a ghost count as alive", async (runtime) => {
    const node = await start({ runtime });
    const ghosts = [];
    for (const name of ["env", "user", "pod", "cgroup"]) ghosts.push(await runPod(node, { name }));
    const [env, user, pod, cgroup] = ghosts as [LabPod, LabPod, LabPod, LabPod];
    await node.powerCut();
    await node.powerOn();
    await node.writeFile(SHIM, "#!/bin/sh\nwhile :; do sleep 4000000; done\n", 0o755);
    await background(node, `env ${inEnvironment(env.sandboxId)} sleep 4000001`, UNPRIVILEGED);
    await background(node, asShim(user.sandboxId), UNPRIVILEGED);
    const script = `mkdir -p /var/claims; printf '#!/bin/sh\\nwhile :; do sleep 4000002; done\\n' >${SHIM}; chmod 755 ${SHIM}; exec ${asShim(pod.sandboxId)}`;
    const claiming = await runPod(node, {
      name: "claims",
      containers: [
        { name: "shim", command: ["sh", "-c", script] },
        { name: "cgroup", command: ["sleep", "4000003"] },
      ],
    });
    const claims = await sleepers(node, 4);
    await nestCgroup(node, claiming.containerIds[1] ?? "", cgroup.sandboxId);

    const { report } = await heal(node, NO_WAITING);

    expect(report.remaining).toEqual([]);
    await expectGone(node, ...ghosts);
    expect(claims.filter((pid) => !existsSync(node.livePath(`/proc/${pid}`)))).toEqual([]);
    await expectAlive(node, { ready: [claiming], kept: [] });
  });
});

async function background(node: LabNode, command: string, user?: number): Promise<void> {
  await node.check(["sh", "-c", `setsid ${command} </dev/null >/dev/null 2>&1 &`], user === undefined ? {} : { user });
}

/** Processes of the test, each with a different sleep time. */
async function sleepers(node: LabNode, count: number): Promise<readonly number[]> {
  return await until("every claiming process runs", HANG_GUARD_MS, () => {
    const found = processesOf(node).filter(({ command }) => /^sleep [1-4]00000\d$/.test(command.join(" ")));
    return found.length === count ? found.map(({ pid }) => pid) : undefined;
  });
}

/** What root in a container with writable cgroups can do: a cgroup below its own, named after another container. */
async function nestCgroup(node: LabNode, containerId: string, name: string): Promise<void> {
  const script = `
for group in $(find /sys/fs/cgroup -type d -name ${containerId}); do
  pids=$(cat "$group/cgroup.procs")
  mkdir -p "$group/x/${name}"
  for pid in $pids; do echo "$pid" >"$group/x/${name}/cgroup.procs"; done
done`;
  await node.check(["sh", "-c", script]);
}
