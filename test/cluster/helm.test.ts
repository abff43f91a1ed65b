import { globSync, truncateSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { ensureHelm } from "../../lab/cluster/tools.ts";
import { importUnghostImage } from "../../lab/cluster/unghost-image.ts";
import { run, runOrThrow } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import type { DoctorReport } from "../../src/doctor/doctor-report.ts";
import { HANG_GUARD_MS } from "./lab-cluster.ts";

const CHART = "deploy/helm/unghost";
const NAMESPACE = "unghost";
const CONDITION = "GhostSandboxes";

let started: Cluster | undefined;
afterEach(async () => {
  await started?.destroy();
  started = undefined;
});

test(
  "the chart with its defaults: agents on two nodes heal a ghost from their pods, and uninstall leaves nothing",
  async () => {
    const story = await startCluster({ nodes: 2, runtime: "1.6" });
    started = story;
    for (const node of story.nodes) await importUnghostImage(node);
    const before = await everything(story);
    const helm = (...args: readonly string[]) => story.controlPlane.helm([...args, `--namespace=${NAMESPACE}`]);

    await helm("install", "unghost", chartPath(), "--create-namespace", "--wait", "--timeout=5m");
    for (const node of story.nodes) await story.waitForCondition(node, CONDITION, ({ status }) => status === "False");
    const agents = await agentPods(story);
    expect(agents.map(({ node }) => node).toSorted()).toEqual(story.nodes.map(({ name }) => name).toSorted());

    // A ghost on the second node: containerd 1.6 cannot stop a sandbox whose CNI result is torn.
    const [, second = story.node] = story.nodes;
    await story.apply(podObjects(["web-0"], second.name));
    await story.waitForPods(1, isReady);
    const [cache = ""] = globSync(second.lab.path("/var/lib/cni/results/cbr0-*"));
    truncateSync(cache);
    await story.kubectl("delete", "pod", "web-0", "--wait=false");
    await until(
      "the pod is gone",
      HANG_GUARD_MS,
      async () => ((await story.pods()).length === 0 ? true : undefined),
      500,
    );
    const events = await until("the event is there", HANG_GUARD_MS, async () => {
      const reasons = await story.kubectl("get", "events", "-A", "-o=jsonpath={.items[*].reason}");
      return reasons.includes("GhostHealed") ? reasons : undefined;
    });
    expect(events).toContain("GhostDetected");

    const agent = agents.find(({ node }) => node === second.name);
    const port = `/api/v1/namespaces/${NAMESPACE}/pods/${agent?.name}:20258/proxy`;
    const metrics = await story.api.text(`${port}/metrics`);
    expect(metrics).toMatch(/^unghost_heals_total\{[^}]*result="healed"[^}]*\} [1-9]/m);
    expect(await story.api.text(`${port}/`)).toContain("<html");
    const exec = ["exec", `--namespace=${NAMESPACE}`, agent?.name ?? "", "--"];
    const history = await story.kubectl(...exec, "unghost", "history", "--host-root=/host");
    expect(history).toContain("libcni-result-cache-corrupt");
    await expectDoctor(story, exec);
    await expectDebugPod(story, second.name);

    await helm("upgrade", "unghost", chartPath(), "--set=mode=observe", "--wait", "--timeout=5m");
    expect(await story.kubectl("get", "configmap", "unghost-agent", `--namespace=${NAMESPACE}`, "-o=yaml")).toContain(
      "observeOnly: true",
    );
    await helm("rollback", "unghost", "1", "--wait", "--timeout=5m");
    for (const node of story.nodes) await story.waitForCondition(node, CONDITION, ({ status }) => status === "False");

    await helm("uninstall", "unghost", "--wait", "--timeout=5m");

    for (const node of story.nodes) expect(await story.condition(node, CONDITION)).toBeUndefined();
    await until("nothing is left", HANG_GUARD_MS, async () => {
      const left = (await everything(story)).filter((name) => !before.includes(name));
      return left.every((name) => name === `namespace/${NAMESPACE}`) ? true : undefined;
    });
  },
  HANG_GUARD_MS,
);

function chartPath(): string {
  return `${process.cwd()}/${CHART}`;
}

async function agentPods(story: Cluster): Promise<readonly { readonly name: string; readonly node: string }[]> {
  const printed = await story.kubectl(
    "get",
    "pods",
    `--namespace=${NAMESPACE}`,
    '-o=jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\\n"}{end}',
  );
  return printed
    .trim()
    .split("\n")
    .map((line) => {
      const [name = "", node = ""] = line.split(" ");
      return { name, node };
    });
}

/** All that a pod without privileges for devices and without journalctl cannot have; nothing else is missing. */
const NOT_IN_THE_POD = ["kernel log", "journald"];

async function expectDoctor(story: Cluster, exec: readonly string[]): Promise<void> {
  const doctor = [...exec, "unghost", "doctor", "-o=json", "--host-root=/host"];
  const { stdout } = await story.controlPlane.tryKubectl(doctor);
  const report = JSON.parse(stdout) as DoctorReport;
  const missing = report.checks.filter(({ status }) => status === "missing");
  expect(missing.filter(({ id }) => !NOT_IN_THE_POD.includes(id))).toEqual([]);
  expect(report).toMatchObject({ hostRoot: "/host", runtime: { reachable: true }, kubernetes: { source: "api" } });
}

async function expectDebugPod(story: Cluster, node: string): Promise<void> {
  const image = (
    await story.kubectl("get", "daemonset", "unghost-agent", `--namespace=${NAMESPACE}`, "-o=jsonpath={..image}")
  ).trim();
  const debug = ["debug", `node/${node}`, "--profile=sysadmin", "--image-pull-policy=Never", `--image=${image}`];
  await story.kubectl(...debug, "--", "unghost", "scan", "-o", "json");
  const pod = await until("the debug pod has ended", HANG_GUARD_MS, async () => {
    return (await story.pods()).find(({ metadata, status }) => {
      return metadata.name.startsWith("node-debugger-") && ["Succeeded", "Failed"].includes(status.phase ?? "");
    });
  });
  const report: unknown = JSON.parse(await story.kubectl("logs", pod.metadata.name));
  expect(report).toMatchObject({
    node,
    verdict: "healthy",
    runtime: { reachable: true },
    kubernetes: { source: "api" },
  });
  await story.kubectl("delete", "pod", pod.metadata.name);
}

/** Names of all objects of all kinds but those that come and go by themselves. */
async function everything(story: Cluster): Promise<readonly string[]> {
  const kinds = (await story.kubectl("api-resources", "--verbs=list", "-o=name")).trim().split("\n");
  const wanted = kinds.filter((kind) => !/^events|^leases|metrics|componentstatuses/.test(kind));
  const listed = await story.kubectl("get", wanted.join(","), "-A", "-o=name", "--ignore-not-found");
  const leases = await story.kubectl("get", "leases", `--namespace=${NAMESPACE}`, "-o=name", "--ignore-not-found");
  return `${listed}\n${leases}`
    .split("\n")
    .filter((name) => name !== "" && !name.endsWith("/kube-root-ca.crt") && !name.endsWith("serviceaccount/default"));
}

test("helm accepts the chart with everything on, refuses wrong values, and deploy/kubernetes is what it renders", async () => {
  const helm = await ensureHelm();
  const switchedOn = ["podMonitor", "serviceMonitor", "prometheusRule", "dashboard", "networkPolicy"].map(
    (key) => `--set=${key}.enabled=true`,
  );
  const disabled = "--set=prometheusRule.disabled={RunPodSandboxFailing}";

  await runOrThrow([helm, "lint", CHART, "--strict"]);
  const { stdout } = await runOrThrow([helm, "template", "unghost", CHART, ...switchedOn, disabled]);
  const wrong = await run([helm, "template", "unghost", CHART, "--set=mode=wipe"]);
  const current = await run([process.execPath, "scripts/manifests.ts", "--check"]);

  expect(stdout).not.toContain("alert: RunPodSandboxFailing");
  for (const kind of ["PodMonitor", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"])
    expect(stdout).toContain(`kind: ${kind}`);
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("mode")]);
  expect(current).toMatchObject({ code: 0, stderr: "" });
});
