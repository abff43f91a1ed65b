import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startControlPlane } from "../../lab/cluster/control-plane.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { run } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import { ensureTools } from "../../lab/tools.ts";
import type { Check, Risk } from "../../src/doctor/doctor-report.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const deployed = [
  ...["ghostreports", "ghostheals"].map((name) => `deploy/helm/unghost/files/crds/${name}.yaml`),
  ...["viewer", "own-node-only", "heal-requests"].map((name) => `deploy/rbac/${name}.yaml`),
];

function nodeObject(name: string, containerRuntimeVersion: string) {
  return { apiVersion: "v1", kind: "Node", metadata: { name }, status: { nodeInfo: { containerRuntimeVersion } } };
}

const slot = {
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name: "unghost-heal-0", namespace: "unghost" },
  spec: { holderIdentity: "gone" },
};

interface Report {
  readonly items: readonly Check[];
  readonly risks: readonly Risk[];
}

test("doctor reads a real API server with the role unghost-viewer", { timeout: HANG_GUARD_MS }, async () => {
  const programs = await ensureClusterTools();
  if (!programs.available) throw new Error(programs.reason);
  const plane = await startControlPlane(await ensureTools(), programs);
  onTestFinished(() => plane.destroy());
  // It would mark nodes without a kubelet as unreachable, and remove them in the end.
  await plane.controllerManager.end("KILL");
  const apply = (text: string) => plane.kubectl(["apply", "-f", "-"], { stdin: text });
  const dir = mkdtempSync(join(tmpdir(), "unghost-doctor-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const config = join(dir, "kubeconfig");
  writeFileSync(config, kubeconfig(plane.server, plane.authority.cert, plane.authority.issue("/CN=jane")));
  async function doctor() {
    const inNetwork = ["nsenter", "-t", String(plane.initPid), "-n"];
    const words = [...inNetwork, UNGHOST, "fleet", "doctor", `--kubeconfig=${config}`, "-o", "json"];
    const { code, stdout, stderr } = await run(words, { timeoutMs: HANG_GUARD_MS });
    const report = (stdout === "" ? { items: [], risks: [] } : JSON.parse(stdout)) as Report;
    const missing = report.items
      .filter(({ status }) => status === "missing")
      .map(({ id, detail }) => `${id}: ${detail}`);
    return { code, stderr, risks: report.risks, missing };
  }

  expect(await doctor()).toMatchObject({ code: 2, stderr: expect.stringContaining("forbidden") });

  for (const file of deployed) await apply(readFileSync(file, "utf8"));
  await plane.kubectl(["create", "clusterrolebinding", "jane", "--clusterrole=unghost-viewer", "--user=jane"]);
  await plane.kubectl(["create", "namespace", "unghost"]);
  await apply(JSON.stringify(slot));
  for (const object of [nodeObject("n1", "containerd://1.6.33"), nodeObject("n2", "containerd://2.4.1")])
    await plane.kubectl(["create", "--raw", "/api/v1/nodes", "-f", "-"], { stdin: JSON.stringify(object) });

  const installed = await until("the definitions are served", WAIT_MS, async () => {
    const found = await doctor();
    return found.missing.some((line) => line.startsWith("custom resources")) ? undefined : found;
  });
  expect(installed).toMatchObject({ code: 1, stderr: "" });
  expect(installed.missing).toEqual([
    "create, get, delete ghostheals.unghost.dev: denied: create, get, delete",
    "agents: none on 2 of 2: n1, n2",
  ]);
  expect(installed.risks.map(({ id, nodes }) => [id, nodes])).toEqual(
    expect.arrayContaining([
      ["slot of a dead node", ["gone"]],
      ["runtime out of support", ["n1"]],
    ]),
  );

  await plane.kubectl(["delete", "validatingadmissionpolicybinding", "unghost-own-node-only"]);
  await plane.kubectl(["delete", "crd", "ghostheals.unghost.dev"]);
  const lost = await until("the definition is not served any more", WAIT_MS, async () => {
    const found = await doctor();
    return found.missing.some((line) => line.startsWith("custom resources")) ? found : undefined;
  });
  expect(lost.missing).toContain("custom resources: unghost.dev/v1alpha1 has no ghostheals, ghostheals/status");
  expect(lost.missing).toContain("admission policy own-node-only: has no binding");
});
