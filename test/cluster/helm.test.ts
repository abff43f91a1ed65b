import { globSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { type ClusterTools, ensureClusterTools, ensureHelm } from "../../lab/cluster/tools.ts";
import { importUnghostImage, LAB_IMAGE } from "../../lab/cluster/unghost-image.ts";
import { run, runOrThrow } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import manifest from "../../package.json" with { type: "json" };
import { publishedAt, publishedChart } from "../../scripts/release/published-at.ts";
import { tar } from "../../src/bundle/tar.ts";
import type { DoctorReport } from "../../src/doctor/doctor-report.ts";
import { throughPortForward } from "./agent-pod.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const CHART = "deploy/helm/unghost";
/** Not the default one, so that nothing depends on its name. */
const NAMESPACE = "node-care";
const CONDITION = "GhostSandboxes";
const IMAGE = `--set=image.repository=${LAB_IMAGE}`;
const CONFIG = "--config=/etc/unghost/agent.yaml";

let started: Cluster | undefined;
afterEach(async () => {
  await started?.destroy();
  started = undefined;
});

test(
  "agents of the default chart heal a ghost from their pods on two nodes; upgrade, rollback and uninstall with helm 4 and 3",
  async () => {
    const story = await startCluster({ nodes: 2, runtime: "1.6" });
    started = story;
    for (const node of story.nodes) await importUnghostImage(node);
    const before = await everything(story);
    const helm = (...args: readonly string[]) => story.controlPlane.helm([...args, `--namespace=${NAMESPACE}`], 4);

    // The first call builds helm.
    await helm("version");
    const installedAt = performance.now();
    await expect(helm("install", "unghost", chartPath(), "--create-namespace")).rejects.toThrow(
      "image.repository is the placeholder",
    );
    const install = ["install", "unghost", chartPath(), IMAGE, "--create-namespace", "--wait", "--timeout=5m"];
    const notes = await helm(...install);
    expect(notes).toContain("unghost doctor");
    console.log(`agents ready on both nodes after ${((performance.now() - installedAt) / 1000).toFixed(1)} s`);
    for (const node of story.nodes) await story.waitForCondition(node, CONDITION, ({ status }) => status === "False");
    const agents = await agentPods(story);
    expect(agents.map(({ node }) => node).toSorted()).toEqual(story.nodes.map(({ name }) => name).toSorted());

    // A ghost on the second node: containerd 1.6 cannot stop a sandbox with a torn CNI result.
    const [, second = story.node] = story.nodes;
    await story.apply(podObjects(["web-0"], second.name));
    await story.waitForPods(1, isReady);
    const [cache = ""] = globSync(second.lab.path("/var/lib/cni/results/cbr0-*"));
    truncateSync(cache);
    await story.kubectl("delete", "pod", "web-0", "--wait=false");
    await until("the pod is gone", WAIT_MS, async () => ((await story.pods()).length === 0 ? true : undefined), 500);
    const events = await until("the event is there", WAIT_MS, async () => {
      const reasons = await story.kubectl("get", "events", "-A", "-o=jsonpath={.items[*].reason}");
      return reasons.includes("GhostHealed") ? reasons : undefined;
    });
    expect(events).toContain("GhostDetected");

    const agent = agents.find(({ node }) => node === second.name);
    const forward = documentedForward().replace("unghost port-forward POD", `${NAMESPACE} port-forward ${agent?.name}`);
    const metrics = await throughPortForward(story, forward, "/metrics");
    expect(metrics).toMatch(/^unghost_heals_total\{[^}]*result="healed"[^}]*\} [1-9]/m);
    expect(await throughPortForward(story, forward, "/")).toContain("<html");
    // The network reaches it only where it is asked for, and then with a token; its pods start without a failed probe.
    const port = `/api/v1/namespaces/${NAMESPACE}/pods/${agent?.name}:20258/proxy/metrics`;
    await expect(story.api.text(port)).rejects.toThrow();
    const complaints = await story.kubectl(
      "get",
      "events",
      `--namespace=${NAMESPACE}`,
      "-o=jsonpath={.items[*].message}",
    );
    expect(complaints).not.toContain("probe failed");
    const exec = ["exec", `--namespace=${NAMESPACE}`, agent?.name ?? "", "--"];
    const history = await story.kubectl(...exec, "unghost", "history", "--host-root=/host");
    expect(history).toContain("libcni-result-cache-corrupt");
    await expectDoctor(story, exec);
    expect(await helm("test", "unghost", "--timeout=5m")).toMatch(/^Phase:\s+Succeeded$/m);
    await expectTokenOnNetwork(story);

    await upgradeRollBackAndUninstall(story, 4, chartPath(), before);

    const { chart, remove } = packagedChart();
    try {
      const published = ["install", "unghost", chart, `--namespace=${NAMESPACE}`, "--wait", "--timeout=5m"];
      await story.controlPlane.helm(published, 3);
      await upgradeRollBackAndUninstall(story, 3, chart, before);
    } finally {
      remove();
    }
  },
  HANG_GUARD_MS,
);

/** The command in the README. */
function documentedForward(): string {
  const [command] = /^kubectl .*port-forward POD 20258/m.exec(readFileSync("README.md", "utf8")) ?? [];
  if (command === undefined) throw new Error("the README shows no kubectl port-forward POD 20258");
  return command;
}

/** `listen=node` serves the node's address with a token that the chart makes, and keeps in an upgrade. */
async function expectTokenOnNetwork(story: Cluster): Promise<void> {
  const secret = ["get", "secret", "unghost-token", `--namespace=${NAMESPACE}`, "-o=jsonpath={.data.token}"];
  const upgrade = async (): Promise<string> => {
    const set = [IMAGE, "--set=listen=node", `--namespace=${NAMESPACE}`, "--wait", "--timeout=5m"];
    await story.controlPlane.helm(["upgrade", "unghost", chartPath(), ...set], 4);
    return Buffer.from(await story.kubectl(...secret), "base64").toString();
  };
  const token = await upgrade();
  expect(await upgrade()).toBe(token);
  const curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", `http://${story.node.ip}:20258/metrics`];
  const get = (...more: readonly string[]) => story.node.lab.check([...curl, ...more]);
  expect([await get(), await get("-H", `Authorization: Bearer ${token}`)]).toEqual(["401", "200"]);
  await story.controlPlane.helm(["rollback", "unghost", "1", `--namespace=${NAMESPACE}`, "--wait", "--timeout=5m"], 4);
}

/** What was installed with the defaults ends without a trace: neither objects nor the nodes' condition. */
async function upgradeRollBackAndUninstall(
  story: Cluster,
  major: 3 | 4,
  chart: string,
  before: readonly string[],
): Promise<void> {
  const helm = (...args: readonly string[]) =>
    story.controlPlane.helm([...args, `--namespace=${NAMESPACE}`, "--wait", "--timeout=5m"], major);
  const config = ["get", "configmap", "unghost-agent", `--namespace=${NAMESPACE}`, "-o=yaml"];

  await helm("upgrade", "unghost", chart, "--reset-then-reuse-values", "--set=mode=observe");
  expect(await story.kubectl(...config)).toContain("observeOnly: true");
  await helm("rollback", "unghost", "1");
  expect(await story.kubectl(...config)).not.toContain("observeOnly: true");
  for (const node of story.nodes) await story.waitForCondition(node, CONDITION, ({ status }) => status === "False");

  await helm("uninstall", "unghost");
  for (const node of story.nodes) expect(await story.condition(node, CONDITION)).toBeUndefined();
  await until("nothing is left", WAIT_MS, async () => {
    const left = (await everything(story)).filter((name) => !before.includes(name));
    return left.every((name) => name === `namespace/${NAMESPACE}`) ? true : undefined;
  });
}

function chartPath(): string {
  return `${process.cwd()}/${CHART}`;
}

/** The chart as `make release` packs it. The control plane has a /tmp of its own, so it is in this directory. */
function packagedChart(): { readonly chart: string; readonly remove: () => void } {
  const dir = mkdtempSync(`${process.cwd()}/dist/chart-`);
  const chart = `${dir}/unghost-chart.tgz`;
  writeFileSync(
    chart,
    gzipSync(tar(publishedChart(CHART, publishedAt({ UNGHOST_IMAGE: LAB_IMAGE }, manifest.version)))),
  );
  return { chart, remove: () => rmSync(dir, { recursive: true }) };
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

/** Not available in a pod without devices and journalctl; nothing else is missing. */
const NOT_IN_THE_POD = ["kernel log", "journald"];

async function expectDoctor(story: Cluster, exec: readonly string[]): Promise<void> {
  const doctor = [...exec, "unghost", "doctor", "-o=json", "--host-root=/host", CONFIG];
  const { stdout } = await story.controlPlane.tryKubectl(doctor);
  const report = JSON.parse(stdout) as DoctorReport;
  const missing = report.checks.filter(({ status }) => status === "missing");
  expect(missing.filter(({ id }) => !NOT_IN_THE_POD.includes(id))).toEqual([]);
  expect(report).toMatchObject({ hostRoot: "/host", runtime: { reachable: true }, kubernetes: { source: "api" } });
}

/** Names of all objects of all kinds except for those that change on their own. */
async function everything(story: Cluster): Promise<readonly string[]> {
  const kinds = (await story.kubectl("api-resources", "--verbs=list", "-o=name")).trim().split("\n");
  const wanted = kinds.filter((kind) => !/^events|^leases|metrics|componentstatuses/.test(kind));
  const listed = await story.kubectl("get", wanted.join(","), "-A", "-o=name", "--ignore-not-found");
  const leases = await story.kubectl("get", "leases", `--namespace=${NAMESPACE}`, "-o=name", "--ignore-not-found");
  return `${listed}\n${leases}`
    .split("\n")
    .filter((name) => name !== "" && !name.endsWith("/kube-root-ca.crt") && !name.endsWith("serviceaccount/default"));
}

async function template(...values: readonly string[]): Promise<string> {
  const set = values.map((value) => `--set=${value}`);
  return (await runOrThrow([await ensureHelm(), "template", "unghost", CHART, IMAGE, ...set])).stdout;
}

const SWITCHED_ON = ["podMonitor", "serviceMonitor", "prometheusRule", "dashboard", "networkPolicy"]
  .map((key) => `${key}.enabled=true`)
  .concat("tokenSecret=given");

test("helm 3 and 4 accept the chart with everything on and render the same, equal to deploy/kubernetes", async () => {
  const rendered: unknown[] = [];
  for (const major of [3, 4] as const) {
    const helm = await ensureHelm(major);
    await runOrThrow([helm, "lint", CHART, "--strict", IMAGE]);
    const set = SWITCHED_ON.map((value) => `--set=${value}`);
    const { stdout } = await runOrThrow([helm, "template", "unghost", CHART, IMAGE, "--kube-version=1.34.0", ...set]);
    rendered.push(objectsIn(stdout));
  }
  const [by3, by4] = rendered as [readonly KubeObject[], readonly KubeObject[]];
  const current = await run([process.execPath, "scripts/manifests.ts", "--check"]);

  expect(by3).toEqual(by4);
  expect(by4.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(["DaemonSet", "PodMonitor", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"]),
  );
  expect(current).toMatchObject({ code: 0, stderr: "" });
});

test("kustomize builds deploy/kubernetes into the objects that the chart renders", async () => {
  const { kubernetesDir } = await clusterPrograms();
  const { stdout } = await runOrThrow([`${kubernetesDir}/kubectl`, "kustomize", "deploy/kubernetes"]);

  expect(objectsIn(stdout)).toEqual(objectsIn(readFileSync("deploy/kubernetes/unghost.yaml", "utf8")));
});

interface KubeObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

function objectsIn(text: string): readonly KubeObject[] {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
  const key = ({ kind, metadata }: KubeObject) => `${kind}/${metadata.name}`;
  return objects.toSorted((one, other) => key(one).localeCompare(key(other)));
}

test.each([
  ["mode=wipe", "at '/mode': value must be one of 'observe', 'heal'"],
  ["distribution=suse", "at '/distribution': value must be one of 'auto'"],
  ["port=0", "at '/port': minimum: got 0, want 1"],
  ["image.tagg=1", "at '/image': additional properties 'tagg' not allowed"],
  ["classes.no-such-class=heal", "at '/classes': additional properties 'no-such-class' not allowed"],
  ["classes.pod-gone.mode=wipe", "at '/classes/pod-gone/mode': value must be one of 'observe', 'heal', 'off'"],
  ["agent.scanEveryy=10s", "at '/agent': additional properties 'scanEveryy' not allowed"],
  ["prometheusRule.disabled={NoSuchAlert}", "at '/prometheusRule/disabled/0': value must be one of"],
])("helm refuses %s with the reason", async (value, reason) => {
  const { code, stderr } = await run([await ensureHelm(), "template", "unghost", CHART, `--set=${value}`]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
});

test.each([
  ["by default", [], "--listen=127.0.0.1:20258", undefined],
  ["with a PodMonitor", ["podMonitor.enabled=true"], "--listen=[$(HOST_IP)]:20258", "unghost-token"],
  ["with a ServiceMonitor", ["serviceMonitor.enabled=true"], "--listen=[$(HOST_IP)]:20258", "unghost-token"],
  ["with a token", ["tokenSecret=mine"], "--listen=[$(HOST_IP)]:20258", "mine"],
  ["with a token on loopback", ["tokenSecret=mine", "listen=loopback"], "--listen=127.0.0.1:20258", "mine"],
  ["open to the network", ["listen=open"], "--listen=[$(HOST_IP)]:20258", undefined],
] as const)("where the agents listen, and with which token: %s", async (_, values, listen, secret) => {
  const rendered = await template(...values);

  expect(rendered).toContain(`- ${listen}\n`);
  expect(/tokenFile: (\S+)/.exec(rendered)?.[1]).toBe(secret && "/etc/unghost-token/token");
  expect(/secretName: (\S+)/.exec(rendered)?.[1]).toBe(secret);
  expect(rendered.includes("kind: Secret")).toBe(secret === "unghost-token");
  for (const monitor of rendered.split("---").filter((text) => /kind: \w+Monitor/.test(text))) {
    expect(monitor).toContain(`name: ${secret}`);
  }
});

test("each alert can be disabled, and has a runbook when a base URL is set", async () => {
  const alertsIn = (text: string) => [...text.matchAll(/alert: (\w+)/g)].map(([, alert = ""]) => alert);
  const withRunbooks = await template("prometheusRule.enabled=true", "prometheusRule.runbookBaseUrl=https://runbooks/");
  const alerts = alertsIn(withRunbooks);

  expect(
    new Set([...withRunbooks.matchAll(/runbook_url: https:\/\/runbooks\/(\w+)\.md/g)].map(([, name]) => name)),
  ).toEqual(new Set(alerts));
  for (const alert of new Set(alerts)) {
    const rendered = await template("prometheusRule.enabled=true", `prometheusRule.disabled={${alert}}`);
    expect([alert, alertsIn(rendered)]).toEqual([alert, alerts.filter((one) => one !== alert)]);
    expect(rendered).not.toContain("runbook_url");
  }
});

async function clusterPrograms(): Promise<ClusterTools> {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  return programs;
}
