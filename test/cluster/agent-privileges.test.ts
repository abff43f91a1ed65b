import { chownSync, existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cgroupWithLimits } from "../../lab/cgroup.ts";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, type PodObject, podObjects } from "../../lab/cluster/objects.ts";
import { orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { leakedLease, unknownId, writeOld } from "../../lab/faults/host-local.ts";
import { type HungAdd, hungAdd } from "../../lab/faults/hung-plugin.ts";
import type { Injected } from "../../lab/faults/injected.ts";
import { leakedNetns } from "../../lab/faults/leaked-netns.ts";
import { lostLink } from "../../lab/faults/lost-link.ts";
import { until } from "../../lab/poll.ts";
import { ExitCode } from "../../src/cli/io.ts";
import { parseJson, property } from "../../src/host/text.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import {
  both,
  type Change,
  deletePod,
  type Ended,
  installChart,
  jsonIn,
  missingLikeAgent,
  NAMESPACE,
  readOnlyThroughout,
  runLikeAgent,
  startLikeAgent,
  unchanged,
  withoutCapability,
  withoutMount,
} from "./agent-pod.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const AT_ONCE = ["--min-age=0s", "--inflight-grace=0s"];
const CONFIG = "--config=/etc/unghost/agent.yaml";

let story: Cluster;
let lease: Injected;
let netns: Injected;
let hung: HungAdd;
let orphanedCache: string;

beforeAll(async () => {
  story = await startCluster({ runtime: "2.3", cgroup: cgroupWithLimits() });
  // The agent itself heals nothing: the test pods do.
  await installChart(story, "mode=observe");
  const { lab, name } = story.node;
  const [web] = podObjects(["web"], name) as [{ spec: object }];
  await story.apply([{ ...web, spec: { ...web.spec, securityContext: { runAsUser: 1000 } } }]);
  await story.waitForPods(1, isReady);
  lease = await leakedLease(lab);
  netns = await leakedNetns(lab);
  hung = await hungAdd(lab, { name: "hung" });
  orphanedCache = `/var/lib/cni/results/cbr0-${unknownId()}-eth0`;
  await writeOld(lab, orphanedCache, "");
  chownSync(lab.path(orphanedCache), 1000, 1000);
}, HANG_GUARD_MS);
afterAll(() => story?.destroy());

/** A problem of the report. */
const PROCESSES_DENIED = expect.objectContaining({ source: "processes", code: "permission-denied" });

function scan(change: Change): Promise<Ended> {
  return runLikeAgent(story, ["scan", "-o=json", ...AT_ONCE], change);
}

function heal(only: string, change: Change): Promise<Ended> {
  return runLikeAgent(story, ["heal", "--yes", "-o=json", `--only=${only}`, ...AT_ONCE], change);
}

function actionsOf(ended: Ended): readonly object[] {
  return (jsonIn(ended).actions ?? []).map(({ outcome, code }) =>
    code === undefined ? { outcome } : { outcome, code },
  );
}

async function isLinkThere(link: string): Promise<boolean> {
  return (await story.node.lab.exec(["ip", "link", "show", link])).code === 0;
}

/** Processes of the node in whose mount namespace the path is mounted. */
async function pidsThatMount(path: string): Promise<string> {
  return (await story.node.lab.exec(["sh", "-c", `grep -l ${path} /proc/[0-9]*/mountinfo`])).stdout.trim();
}

async function podNamed(name: string): Promise<PodObject | undefined> {
  return (await story.pods(NAMESPACE)).find(({ metadata }) => metadata.name === name);
}

/** Paths that a scan finds in a running pod. */
async function scannedFrom(pod: string): Promise<readonly (string | undefined)[]> {
  const exec = ["exec", `--namespace=${NAMESPACE}`, pod, "--", "unghost", "scan", "-o=json", "--host-root=/host"];
  const { stdout } = await story.controlPlane.tryKubectl([...exec, ...AT_ONCE]);
  return (JSON.parse(stdout) as NodeReport).findings.map(({ subject }) => subject.path);
}

describe("without one of its privileges the agent's pod loses", { timeout: HANG_GUARD_MS }, () => {
  test("nothing with everything that the chart grants: doctor reports no problem", async () => {
    expect(await missingLikeAgent(story, unchanged)).toEqual([]);
    expect(await missingLikeAgent(story, readOnlyThroughout)).toEqual([]);
    expect(jsonIn(await scan(unchanged)).problems).toEqual([]);
  });

  test("user 0: the runtime's socket", async () => {
    const scanned = await scan(({ containers: [container] }) => {
      Object.assign(container.securityContext, { runAsUser: 65532, runAsGroup: 65532 });
    });
    expect([scanned.code, jsonIn(scanned).problems]).toEqual([
      2,
      expect.arrayContaining([expect.objectContaining({ source: "cri", code: "unreachable" })]),
    ]);
  });

  test("the host's root directory: everything", async () => {
    const scanned = await scan(withoutMount("host"));
    expect([scanned.code, jsonIn(scanned).runtime.reachable]).toEqual([2, false]);
  });

  test("hostPID: the end of hung plugins", async () => {
    const healed = await heal("sandbox-name-held-by-inflight-run", (spec) => {
      spec.hostPID = false;
    });
    expect(actionsOf(healed)).toEqual([{ outcome: "refused", code: "foreign-pid-namespace" }]);
    expect(existsSync(story.node.lab.livePath(`/proc/${hung.pid}`))).toBe(true);
  });

  test("hostNetwork: its start on a node where pods get no network", async () => {
    const name = "without-host-network";
    await orderAtGate(story.node.lab, "ADD", name, refusal("no addresses left"));
    const change: Change = (spec) => void Object.assign(spec, { hostNetwork: false });
    await startLikeAgent(story, ["version"], change, name);
    await until("kubelet could not create its sandbox", WAIT_MS, async () => {
      const events = ["get", "events", `--namespace=${NAMESPACE}`, "-o=name"];
      const selector = `--field-selector=involvedObject.name=${name},reason=FailedCreatePodSandBox`;
      return (await story.kubectl(...events, selector)) !== "" || undefined;
    });
    await deletePod(story, name);
  });

  test("DAC_READ_SEARCH: directories without read permission", async () => {
    const closed = "/var/lib/cni/results";
    await story.node.lab.check(["chmod", "000", closed]);
    expect(jsonIn(await scan(unchanged)).problems).toEqual([]);
    const { problems } = jsonIn(await scan(withoutCapability("DAC_READ_SEARCH")));
    await story.node.lab.check(["chmod", "700", closed]);
    expect(problems).toContainEqual(expect.objectContaining({ problem: expect.stringContaining(`${closed} may not`) }));
  });

  test("SYS_PTRACE: any proof that something is dead", async () => {
    const healed = await heal("netns-and-veth-leak", withoutCapability("SYS_PTRACE"));
    expect(actionsOf(healed)).not.toContainEqual({ outcome: "healed" });
    expect(jsonIn(healed).problems).toContainEqual(PROCESSES_DENIED);
    expect(existsSync(story.node.lab.livePath(netns.path ?? ""))).toBe(true);
  });

  test("SYS_ADMIN: the removal of network namespaces", async () => {
    const healed = await heal("netns-and-veth-leak", withoutCapability("SYS_ADMIN"));
    expect(actionsOf(healed)).toEqual([{ outcome: "failed", code: "unmount-failed" }]);
    expect(await pidsThatMount(netns.path ?? "")).not.toBe("");
  });

  test("SYS_CHROOT: the node's CNI plugins", async () => {
    const healed = await heal("hostlocal-ip-leak-after-reboot", withoutCapability("SYS_CHROOT"));
    expect(actionsOf(healed)).toEqual([{ outcome: "failed", code: "address-not-released" }]);
    expect(existsSync(story.node.lab.path(lease.path ?? ""))).toBe(true);
  });

  test("NET_ADMIN: links that CNI plugins delete", async () => {
    const kept = await lostLink(story.node.lab, "10.88.200.8");
    const incomplete = await heal("hostlocal-ip-leak-after-reboot", withoutCapability("NET_ADMIN"));
    expect(actionsOf(incomplete)).toContainEqual({ outcome: "healed", code: "del-incomplete" });
    expect(await isLinkThere(kept)).toBe(true);

    const deleted = await lostLink(story.node.lab, "10.88.200.9");
    expect(actionsOf(await heal("hostlocal-ip-leak-after-reboot", unchanged))).toEqual([{ outcome: "healed" }]);
    expect(await isLinkThere(deleted)).toBe(false);
  });

  test("the CNI directory: the quarantine of caches", async () => {
    const healed = await heal("cni-cache-files-orphaned", both(readOnlyThroughout, withoutMount("cni")));
    expect(actionsOf(healed)).toEqual([{ outcome: "failed", code: "file-refused" }]);
    expect(existsSync(story.node.lab.path(orphanedCache))).toBe(true);
  });

  test("the state directory: the journal, and so every change", async () => {
    const healed = await heal("cni-cache-files-orphaned", both(readOnlyThroughout, withoutMount("state")));
    expect(healed.code).toBe(ExitCode.refused);
    expect(existsSync(story.node.lab.path(orphanedCache))).toBe(true);
  });

  test("the directory of the lock: a second agent is noticed", async () => {
    expect((await runLikeAgent(story, ["agent", CONFIG], unchanged)).code).toBe(ExitCode.refused);
    const second = await startLikeAgent(story, ["agent", CONFIG], both(readOnlyThroughout, withoutMount("lock")));
    await until("the second agent has logged it", WAIT_MS, async () => {
      const logged = await story.controlPlane.tryKubectl(["logs", `--namespace=${NAMESPACE}`, second]);
      const codes = logged.stdout.split("\n").map((line) => property(parseJson(line), "code"));
      return codes.includes("agent-lock-unavailable") || undefined;
    });
    await deletePod(story, second);
  });

  test("its CPU request: doctor reports the share that it gets without", async () => {
    const small = await missingLikeAgent(story, ({ containers: [{ resources }] }) => {
      resources.requests["cpu"] = "10m";
    });
    expect(small).toEqual(["cpu request"]);
  });

  test("its configuration: the agent's start", async () => {
    expect((await runLikeAgent(story, ["agent", CONFIG], withoutMount("config"))).code).toBe(ExitCode.usage);
  });

  test("mount propagation: which processes are in a network namespace that is younger than the pod", async () => {
    const pod = await startLikeAgent(story, ["keep"], ({ containers: [container] }) => {
      for (const mount of container.volumeMounts) delete mount.mountPropagation;
    });
    await until("it runs", WAIT_MS, async () => {
      const [container] = (await podNamed(pod))?.status.containerStatuses ?? [];
      return container?.state?.running === undefined ? undefined : true;
    });
    const { path = "" } = await leakedNetns(story.node.lab);
    await story.node.lab.check(["sh", "-c", `nsenter --net=${path} sleep 1000000000 >/dev/null 2>&1 &`]);

    expect(await scannedFrom(pod)).toContain(path);
    expect(await scannedFrom("daemonset/unghost-agent")).not.toContain(path);
    await deletePod(story, pod);
  });

  test("PodSecurity: the security page lists what the API server refuses, level by level", async () => {
    const page = readFileSync("docs/security.md", "utf8");
    const listed = [...page.matchAll(/^\| `([^`]+)` \| (?:baseline|restricted) \|/gm)].map(([, name]) => name);
    const refused = new Set<string>();
    for (const level of ["baseline", "restricted"]) {
      const label = ["label", "--dry-run=server", "--overwrite", "namespace", NAMESPACE];
      const { stderr } = await story.controlPlane.tryKubectl([...label, `pod-security.kubernetes.io/enforce=${level}`]);
      const [, violations = ""] = /unghost-agent-\S+: (.*)/.exec(stderr) ?? [];
      for (const violation of violations.split(", ")) refused.add(violation.trim());
    }
    expect([...refused].toSorted()).toEqual(listed.toSorted());
  });

  test("nothing with everything: all of it is healed", async () => {
    const healed = await runLikeAgent(story, ["heal", "--yes", "-o=json", ...AT_ONCE], unchanged);

    expect(jsonIn(healed).actions?.filter(({ outcome }) => outcome !== "healed")).toEqual([]);
    const { lab } = story.node;
    expect([existsSync(lab.livePath(netns.path ?? "")), existsSync(lab.path(orphanedCache))]).toEqual([false, false]);
    expect(await pidsThatMount(netns.path ?? "")).toBe("");
    expect(existsSync(lab.livePath(`/proc/${hung.pid}`))).toBe(false);
  });
});
