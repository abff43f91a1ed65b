import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Authority, makeAuthority } from "../../lab/stub-api/certificates.ts";
import { runCli } from "../../src/cli/app.ts";
import { type Asked, listOf, type Reply, type StubServer, startStub, statusOf } from "../kube/stub-server.ts";

export type Answers = Readonly<Record<string, unknown>>;

export interface FleetRig {
  readonly dir: string;
  readonly ca: Authority;
  readonly server: StubServer;
  /** A kubeconfig with one context, `lab`, and a token. */
  readonly kubeconfig: string;
  /** Runs `unghost fleet` on that cluster. */
  readonly fleet: (...args: readonly string[]) => Promise<Ran>;
  readonly run: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ran>;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** An API server that answers each path with a body, or 404. */
export async function fleetRig(answers: Answers | ((asked: Asked) => Reply)): Promise<FleetRig> {
  const dir = mkdtempSync(join(tmpdir(), "unghost-fleet-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const ca = makeAuthority(dir, "cluster");
  const answer = typeof answers === "function" ? answers : byPath(answers);
  const server = await startStub(answer, { ...ca.issue("/CN=api", { san: "IP:127.0.0.1" }), ca: ca.cert });
  onTestFinished(() => server.close());
  const kubeconfig = join(dir, "kubeconfig");
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf({ server: server.url, ca: ca.cert })));
  return {
    dir,
    ca,
    server,
    kubeconfig,
    run,
    fleet: (...args) => run(["fleet", ...args, `--kubeconfig=${kubeconfig}`]),
  };
}

function byPath(answers: Answers): (asked: Asked) => Reply {
  return ({ path }) => (path in answers ? { body: answers[path] } : statusOf(404, `${path} not found`));
}

export interface KubeconfigParts {
  readonly server: string;
  readonly ca: string;
  readonly name?: string;
  readonly user?: object;
  readonly current?: string;
}

export function kubeconfigOf({
  server,
  ca,
  name = "lab",
  user = { token: "secret" },
  current = name,
}: KubeconfigParts) {
  const cluster = { server, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": current,
    contexts: [{ name, context: { cluster: name, user: name } }],
    clusters: [{ name, cluster }],
    users: [{ name, user }],
  };
}

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  const code = await runCli(args, {
    stdout: (text) => void (stdout += text),
    stderr: (text) => void (stderr += text),
    env,
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 100,
    stdin: async function* () {},
  });
  return { code, stdout, stderr };
}

export function tableOf(columns: readonly string[], rows: readonly (readonly string[])[]) {
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {},
    columnDefinitions: columns.map((name) => ({ name, type: "string" })),
    rows: rows.map((cells) => ({ cells, object: null })),
  };
}

type NodeRow = readonly [name: string, status: string];

export function nodesTable(...nodes: readonly NodeRow[]) {
  const rows = nodes.map(([name, status]) => [name, status, "<none>", "5d", "v1.36.4"]);
  return tableOf(["Name", "Status", "Roles", "Age", "Version"], rows);
}

type AgentRow = readonly [node: string, ready: "0/1" | "1/1"];

export function agentsTable(...pods: readonly AgentRow[]) {
  const rows = pods.map(([node, ready], index) => [
    `unghost-agent-${index}`,
    ready,
    "Running",
    "0",
    "5d",
    "1.1.1.1",
    node,
  ]);
  return tableOf(["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"], rows);
}

export function reportObject(name: string, status: object = {}) {
  return {
    apiVersion: "unghost.dev/v1alpha1",
    kind: "GhostReport",
    metadata: { name, uid: `uid-${name}`, resourceVersion: "7" },
    status: {
      verdict: "healthy",
      observedAt: new Date().toISOString(),
      agentVersion: "0.1.0",
      totals: { findings: 0, blockedPods: 0 },
      truncated: false,
      ...status,
    },
  };
}

export const REPORTS_PATH = "/apis/unghost.dev/v1alpha1/ghostreports";
export const NODES_PATH = "/api/v1/nodes";
export const PODS_PATH = "/api/v1/pods";

/** The answers to the three lists of `unghost fleet scan`; by default n1 is healthy, and its agent runs. */
export function clusterOf({
  nodes = [["n1", "Ready"]],
  agents = [["n1", "1/1"]],
  reports = [reportObject("n1")],
}: ClusterLists = {}): Answers {
  return {
    [NODES_PATH]: nodesTable(...nodes),
    [PODS_PATH]: agentsTable(...agents),
    [REPORTS_PATH]: reportsOf(...reports),
  };
}

interface ClusterLists {
  readonly nodes?: readonly NodeRow[];
  readonly agents?: readonly AgentRow[];
  readonly reports?: readonly object[];
}

export const reportsOf = (...reports: readonly object[]) => listOf(reports);
