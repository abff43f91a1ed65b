import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { checkoutDir } from "../cache.ts";
import { unghostProgram } from "../demo/unghost-program.ts";
import { type Service, service } from "../service.ts";
import type { Cluster } from "./cluster.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { kubeconfig } from "./kubeconfig.ts";

export const AGENT_KUBECONFIG = "/etc/unghost/kubeconfig";
const AGENT_CONFIG = "/etc/unghost/agent.yaml";
export const AGENT_LOG = "/var/log/unghost-agent.log";
const RBAC = ["agent.yaml", "healing.yaml", "own-node-only.yaml", "heal-requests.yaml"].map((file) => `rbac/${file}`);
const CRDS = ["ghostreports", "ghostheals"].map((name) => `helm/unghost/files/crds/${name}.yaml`);

/** The custom resources, the roles and the admission policy of deploy/ in the cluster, and on each node a kubeconfig with a token of the agent's ServiceAccount. */
export async function admitAgents(cluster: Cluster): Promise<void> {
  const manifests = [...CRDS, ...RBAC].map((file) => readFileSync(join(checkoutDir() ?? ".", "deploy", file), "utf8"));
  await cluster.apply(manifests.join("\n---\n"));
  for (const node of cluster.nodes) {
    // Bound to the node, like the token of a DaemonSet's pod: the admission policy allows writes only there.
    const bound = ["--bound-object-kind=Node", `--bound-object-name=${node.name}`];
    const account = ["unghost-agent", "--namespace=unghost", "--duration=12h"];
    const token = await cluster.kubectl("create", "token", ...account, ...bound);
    const { server, authority } = cluster.controlPlane;
    await node.lab.writeFile(AGENT_KUBECONFIG, kubeconfig(server, authority.cert, { token: token.trim() }), 0o600);
  }
}

/**
 * The built agent as a service of the node. `config` is its configuration file; `under` is a prefix of its command.
 * Start it again after a boot.
 */
export async function agentOn(
  { lab }: ClusterNode,
  config: object = {},
  args: readonly string[] = [],
  under: readonly string[] = [],
): Promise<Service> {
  await lab.writeFile(AGENT_CONFIG, stringify(config));
  const flags = ["agent", `--config=${AGENT_CONFIG}`, `--kubeconfig=${AGENT_KUBECONFIG}`, ...args];
  return service(lab, "unghost-agent", AGENT_LOG, [...under, ...unghostProgram().command, ...flags]);
}
