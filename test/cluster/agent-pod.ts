import type { Cluster } from "../../lab/cluster/cluster.ts";
import { importUnghostImage, LAB_IMAGE } from "../../lab/cluster/unghost-image.ts";
import { until } from "../../lab/poll.ts";
import type { DoctorReport } from "../../src/doctor/doctor-report.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { WAIT_MS } from "./lab-cluster.ts";

export const NAMESPACE = "unghost";
const CHART = `${process.cwd()}/deploy/helm/unghost`;

/** Installs the chart with these values, by helm 3: the test of the chart itself uses helm 4. */
export async function installChart(story: Cluster, ...values: readonly string[]): Promise<void> {
  for (const node of story.nodes) await importUnghostImage(node);
  const set = [`image.repository=${LAB_IMAGE}`, ...values].map((value) => `--set=${value}`);
  const install = ["install", "unghost", CHART, `--namespace=${NAMESPACE}`, "--create-namespace", ...set];
  await story.controlPlane.helm([...install, "--wait", "--timeout=5m"], 3);
}

/** Runs `kubectl port-forward` as the documents show it, and returns what the path answers. */
export async function throughPortForward(story: Cluster, forward: string, path: string): Promise<string> {
  const curl = `curl -fsS --retry 60 --retry-delay 1 --retry-connrefused http://localhost:20258${path}`;
  return await story.controlPlane.shell(`${forward} >&2 & trap "kill $!" EXIT; ${curl}`);
}

interface Container {
  name: string;
  args: string[];
  resources: { requests: Record<string, string> };
  securityContext: {
    runAsUser: number;
    runAsGroup: number;
    allowPrivilegeEscalation: boolean;
    capabilities: { drop: string[]; add: string[] };
  };
  volumeMounts: { name: string; mountPropagation?: string; recursiveReadOnly?: string }[];
  [field: string]: unknown;
}

/** The agent's pod spec in the chart, to be changed. */
export interface AgentSpec {
  hostPID: boolean;
  hostNetwork: boolean;
  containers: [Container];
  [field: string]: unknown;
}

/** Removes something from the agent's pod. */
export type Change = (spec: AgentSpec) => void;

export const unchanged: Change = () => undefined;

export function withoutCapability(name: string): Change {
  return ({ containers: [{ securityContext }] }) => {
    const { capabilities } = securityContext;
    capabilities.add = capabilities.add.filter((one) => one !== name);
  };
}

export function withoutMount(name: string): Change {
  return ({ containers: [container] }) => {
    container.volumeMounts = container.volumeMounts.filter((mount) => mount.name !== name);
  };
}

/**
 * As on a node with /var and /run on its root file system, and with runtimes that apply read-only recursively: the
 * lab's nodes have both on separate file systems, which plain `readOnly` does not affect.
 */
export const readOnlyThroughout: Change = ({ containers: [container] }) => {
  for (const mount of container.volumeMounts.filter(({ name }) => name === "host")) {
    mount.recursiveReadOnly = "Enabled";
    delete mount.mountPropagation;
  }
};

export function both(one: Change, other: Change): Change {
  return (spec) => {
    one(spec);
    other(spec);
  };
}

async function agentSpec(story: Cluster): Promise<AgentSpec> {
  const daemonSet = await story.kubectl("get", "daemonset", "unghost-agent", `--namespace=${NAMESPACE}`, "-o=json");
  return (JSON.parse(daemonSet) as { spec: { template: { spec: AgentSpec } } }).spec.template.spec;
}

let started = 0;

/** Starts a pod like the agent's with one change and another command. Returns its name. */
export async function startLikeAgent(
  story: Cluster,
  args: readonly string[],
  change: Change,
  name = `like-agent-${started++}`,
): Promise<string> {
  const spec = await agentSpec(story);
  const [container] = spec.containers;
  // The agent itself uses the port.
  for (const field of ["startupProbe", "livenessProbe", "readinessProbe", "ports"]) delete container[field];
  container.args = [...args, "--host-root=/host"];
  change(spec);
  const pod = { ...spec, restartPolicy: "Never", nodeName: story.node.name };
  await story.apply([{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE }, spec: pod }]);
  return name;
}

export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs one command in such a pod to its end. */
export async function runLikeAgent(story: Cluster, args: readonly string[], change: Change): Promise<Ended> {
  const name = await startLikeAgent(story, args, change);
  const code = await until(`${name} has ended`, WAIT_MS, async () => {
    const pod = (await story.pods(NAMESPACE)).find(({ metadata }) => metadata.name === name);
    return pod?.status.containerStatuses?.[0]?.state?.terminated?.exitCode;
  });
  const output = await story.kubectl("logs", `--namespace=${NAMESPACE}`, name);
  await deletePod(story, name);
  return { code, output };
}

export async function deletePod(story: Cluster, name: string): Promise<void> {
  await story.kubectl("delete", "pod", `--namespace=${NAMESPACE}`, name, "--wait=false");
}

/** kubelet's log of a container has both streams: the report is the only JSON document in it. */
export function jsonIn<Report = NodeReport>({ output }: Ended): Report {
  const [json] = /^\{$[^]*?^\}$/m.exec(output) ?? [];
  if (json === undefined) throw new Error(`no report in: ${output}`);
  return JSON.parse(json) as Report;
}

/** Not available in a pod without devices and journalctl; doctor reports it. */
export const NOT_IN_THE_POD = ["kernel log", "journald"];

/** What doctor reports as missing in such a pod. */
export async function missingLikeAgent(story: Cluster, change: Change): Promise<readonly string[]> {
  const { checks } = jsonIn<DoctorReport>(await runLikeAgent(story, ["doctor", "-o=json"], change));
  const missing = checks.filter(({ status }) => status === "missing").map(({ id }) => id);
  return missing.filter((id) => !NOT_IN_THE_POD.includes(id));
}
