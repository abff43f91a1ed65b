import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../lab/cluster/control-plane.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { run } from "../../lab/command.ts";
import { ensureTools } from "../../lab/tools.ts";
import { conditionOf } from "../../src/agent/kube/condition.ts";
import { ghostReportOf } from "../../src/agent/kube/ghost-report.ts";
import { freshState, scanOf } from "../agent/metrics/agent-state.ts";
import { type SightingParts, sighting } from "../agent/page/agent-states.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { HANG_GUARD_MS } from "./lab-cluster.ts";

const NODES = 5000;
/** A rack's power cut. */
const HAUNTED = 40;
const AT_ONCE = 40;
const REPORTS = "/apis/unghost.dev/v1alpha1/ghostreports";
const APPLY = { type: "application/apply-patch+yaml", query: "?fieldManager=unghost&force=true" };
const crd = readFileSync("deploy/helm/unghost/files/crds/ghostreports.yaml", "utf8");

const names = Array.from({ length: NODES }, (_, index) => `node-${String(index).padStart(4, "0")}`);

/** As the agent makes it. */
function statusOf(index: number): unknown {
  const ghosts = index < HAUNTED ? 12 : 0;
  const pods = Array.from({ length: ghosts }, (_, pod): SightingParts => ({ pod: `web-${index}-${pod}` }));
  const sightings = pods.map(sighting);
  const pod = { namespace: "shop", name: "web-0", uid: "7d1f" };
  const report = {
    verdict: ghosts > 0 ? "ghosts" : "healthy",
    observedAt: new Date().toISOString(),
    sandboxes: { total: 60, ready: 60 - ghosts, notReady: ghosts },
    podCreation: { able: "yes", lastSuccess: { at: new Date().toISOString(), pod }, blockedPods: [] },
  } as const;
  const state = freshState({ sightings, scan: scanOf({ report, endedAtMs: 0 }), version: "0.1.0" });
  const condition = conditionOf(state, 0);
  const status = condition && ghostReportOf(state, condition);
  const conditions = status?.conditions?.map((one) => ({ ...one, lastTransitionTime: "2026-03-01T12:00:00Z" }));
  return { ...status, conditions };
}

function writer({ proxySocket }: ControlPlane) {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  onTestFinished(() => agent.destroy());
  return (method: "POST" | "PATCH", path: string, type: string, body: object) =>
    new Promise<void>((done, failed) => {
      const headers = { "content-type": type };
      const asked = request({ socketPath: proxySocket, path, method, agent, headers }, (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
        answer.once("end", () =>
          (answer.statusCode ?? 500) < 300
            ? done()
            : failed(new Error(`${method} ${path}: ${answer.statusCode} ${text}`)),
        );
      });
      asked.once("error", failed);
      asked.end(JSON.stringify(body));
    });
}

/** The work of each index, a few at once. */
async function each(work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < NODES) await work(next++);
    }),
  );
}

test(
  "5,000 reports on a real API server: their bytes, and how long a scan of the fleet takes",
  async () => {
    const programs = await ensureClusterTools();
    if (!programs.available) throw new Error(programs.reason);
    const plane = await startControlPlane(await ensureTools(), programs);
    onTestFinished(() => plane.destroy());
    await plane.kubectl(["apply", "-f", "-"], { stdin: crd });
    await plane.kubectl(["wait", "--for=condition=Established", "crd/ghostreports.unghost.dev", "--timeout=60s"]);
    const write = writer(plane);
    await each(async (index) => {
      const name = names[index] ?? "";
      const common = { apiVersion: "unghost.dev/v1alpha1", kind: "GhostReport" };
      const node = { apiVersion: "v1", kind: "Node", metadata: { name } };
      await write("POST", "/api/v1/nodes", "application/json", node);
      const path = `${REPORTS}/${name}`;
      await write("PATCH", `${path}${APPLY.query}`, APPLY.type, { ...common, metadata: { name } });
      const status = { ...common, metadata: { name }, status: statusOf(index) };
      await write("PATCH", `${path}/status${APPLY.query}`, APPLY.type, status);
    });

    const { items } = await plane.api.get<{ readonly items: readonly object[] }>(`${REPORTS}?resourceVersion=0`);
    const sizes = items.map((item) => Buffer.byteLength(JSON.stringify(item))).toSorted((one, other) => one - other);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    const [typical = 0, largest = 0] = [sizes[Math.floor(sizes.length / 2)], sizes.at(-1)];
    console.log(
      `${sizes.length} reports: ${(bytes / 1e6).toFixed(1)} MB, typical ${typical} bytes, largest ${largest}`,
    );
    expect(sizes).toHaveLength(NODES);
    expect(largest).toBeLessThanOrEqual(8192);
    expect(bytes).toBeLessThanOrEqual(12e6);

    const dir = mkdtempSync(join(tmpdir(), "unghost-scale-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const config = join(dir, "kubeconfig");
    const { server, authority } = plane;
    writeFileSync(config, kubeconfig(server, authority.cert, authority.issue("/O=system:masters/CN=operator")));
    const inNetwork = ["nsenter", "-t", String(plane.initPid), "-n"];
    const listedAt = performance.now();
    await plane.kubectl(["get", "ghostreports"]);
    console.log(`kubectl get ghostreports: ${((performance.now() - listedAt) / 1000).toFixed(2)} s`);
    for (const output of ["table", "json", "table", "json"]) {
      const startedAt = performance.now();
      const { code, stdout, stderr } = await run(
        [...inNetwork, ...MEASURED, UNGHOST, "fleet", "scan", `--kubeconfig=${config}`, "-o", output],
        { timeoutMs: HANG_GUARD_MS },
      );
      const seconds = (performance.now() - startedAt) / 1000;
      console.log(`-o ${output}: ${seconds.toFixed(2)} s; ${stderr.trim().replaceAll("\n", "; ")}`);
      expect(code).toBe(1);
      if (output === "json")
        expect((JSON.parse(stdout) as { readonly items: readonly object[] }).items).toHaveLength(NODES);
      else expect(stdout.split("\n").filter((line) => line.startsWith("node-"))).toHaveLength(NODES);
    }
  },
  HANG_GUARD_MS,
);

/** Prints the most memory on stderr, where GNU time is installed. */
const MEASURED = ["sh", "-c", 'if [ -x /usr/bin/time ]; then exec /usr/bin/time -f "%M KB" "$@"; fi; exec "$@"', "sh"];
