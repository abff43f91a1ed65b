import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { leakedLease } from "../../lab/faults/host-local.ts";
import type { LabNode } from "../../lab/node.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";
import { unghostIn } from "./healed-node.ts";
import {
  kubeconfigWithToken,
  runKubeletStandIn,
  runSimulatedRuntime,
  selfSigned,
  UNPRIVILEGED,
  writeSecret,
} from "./impostor.ts";
import { problemsOf, reportOf, UNGHOST } from "./unghost.ts";

const SECRET = "/root/secret/token";
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

async function scanned(node: LabNode, env: Readonly<Record<string, string>> = {}): Promise<NodeReport> {
  const command = [UNGHOST, "scan", "--timeout", "10s", "-o", "json"];
  return reportOf(await node.exec(command, { env, timeoutMs: 120_000 }));
}

/** The kubelet is only used if it has directories of pods. */
async function nodeWithoutApi(): Promise<LabNode> {
  const node = await start();
  await node.check(["mkdir", "-p", "/var/lib/kubelet/pods/310e3cd6-63ea-446b-a218-25835c73ca24/volumes"]);
  return node;
}

describe.skipIf(NO_REAL_NODE !== undefined)("a process named kubelet", () => {
  test("of an ordinary user gets no token, whatever its kubeconfig names", async () => {
    const node = await nodeWithoutApi();
    const tokenFile = await writeSecret(node, SECRET);
    await node.check(["tee", "/tmp/evil.conf"], { stdin: kubeconfigWithToken(tokenFile), user: UNPRIVILEGED });
    const kubelet = await runKubeletStandIn(node, {
      user: UNPRIVILEGED,
      kubeconfig: "/tmp/evil.conf",
      identity: selfSigned("evil"),
    });

    await scanned(node);

    expect(kubelet.sent()).toEqual([]);
  });

  test("of an ordinary user does not get the agent's own token when the API is down", async () => {
    const node = await nodeWithoutApi();
    const identity = selfSigned("evil");
    await writeSecret(node, `${SERVICE_ACCOUNT}/token`);
    await node.check(["tee", `${SERVICE_ACCOUNT}/ca.crt`], { stdin: identity.cert });
    const kubelet = await runKubeletStandIn(node, { user: UNPRIVILEGED, kubeconfig: "/none", identity });

    const report = await scanned(node, { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "1" });

    expect(kubelet.sent()).toEqual([]);
    expect(problemsOf(report)).toEqual([expect.stringMatching(/^kubernetes: .*cannot be reached/)]);
  });

  test("gets a token when it runs as root and has the certificate on the node's disk", async () => {
    const node = await nodeWithoutApi();
    const identity = selfSigned("n1");
    const tokenFile = await writeSecret(node, SECRET);
    await node.writeFile("/etc/kubernetes/kubelet.conf", kubeconfigWithToken(tokenFile));
    await node.writeFile("/var/lib/kubelet/pki/kubelet.crt", identity.cert);
    const kubeconfig = "/etc/kubernetes/kubelet.conf";
    const kubelet = await runKubeletStandIn(node, { user: 0, kubeconfig, identity });

    await scanned(node);

    expect(kubelet.sent()).toEqual(["/pods Bearer top-secret"]);
  });

  test.each<readonly [string, (node: LabNode) => Promise<unknown>]>([
    ["another one", (node) => node.writeFile("/var/lib/kubelet/pki/kubelet.crt", selfSigned("n1").cert)],
    ["none", () => Promise.resolve()],
  ])("gets no token when its certificate cannot be verified: on the node's disk is %s", async (_what, prepare) => {
    const node = await nodeWithoutApi();
    await prepare(node);
    const tokenFile = await writeSecret(node, SECRET);
    await node.writeFile("/etc/kubernetes/kubelet.conf", kubeconfigWithToken(tokenFile));
    const kubeconfig = "/etc/kubernetes/kubelet.conf";
    const kubelet = await runKubeletStandIn(node, { user: 0, kubeconfig, identity: selfSigned("n1") });

    const report = await scanned(node);

    expect(kubelet.sent()).toEqual(["/pods None"]);
    expect(problemsOf(report).join()).toMatch(
      /was not sent the token .* certificate could not be verified .*kubelet\.crt/,
    );
  });

  test("does not decide between two runtimes, and heal runs none of its plugins", async () => {
    const node = await start();
    await leakedLease(node);
    await runSimulatedRuntime(node, { user: 0, socket: "/run/crio/crio.sock", cniBinDir: "/opt/cni/bin" });
    await runSimulatedRuntime(node, { user: UNPRIVILEGED, socket: "/tmp/evil/evil.sock", cniBinDir: "/tmp/evil/bin" });
    const plugin = "#!/bin/sh\ntouch /run/owned-by-the-attacker\n";
    await node.check(
      ["sh", "-c", "mkdir /tmp/evil/bin && cat >/tmp/evil/bin/host-local && chmod 755 /tmp/evil/bin/*"],
      { stdin: plugin, user: UNPRIVILEGED },
    );
    const script = "#!/bin/sh\nwhile :; do sleep 1000; done\n";
    await node.check(["sh", "-c", "cat >/tmp/evil/kubelet && chmod 755 /tmp/evil/kubelet"], {
      stdin: script,
      user: UNPRIVILEGED,
    });
    const fake =
      "setsid /tmp/evil/kubelet --container-runtime-endpoint=unix:///tmp/evil/evil.sock </dev/null >/dev/null 2>&1 &";
    await node.check(["sh", "-c", fake], { user: UNPRIVILEGED });

    const report = await scanned(node);
    const healed = await unghostIn(node, ["heal", "--yes", "--no-kube", "--min-age", "0s", "-o", "json"]);

    expect(problemsOf(report).join()).toMatch(/not believed: kubelet \(pid \d+\) runs as uid 65534, not as root/);
    expect([report.runtime.endpoint, healed.code]).toEqual(["", 2]);
    expect(existsSync(node.livePath("/run/owned-by-the-attacker"))).toBe(false);
  });
});

describe.skipIf(NO_REAL_NODE !== undefined)("files that users other than root may change", () => {
  const EVIL = "unix:///tmp/evil/evil.sock";

  test("a runtime socket is refused, however it is named", async () => {
    const node = await start();
    await runSimulatedRuntime(node, { user: UNPRIVILEGED, socket: "/tmp/evil/evil.sock", cniBinDir: "/opt/cni/bin" });

    const flagged = reportOf(await unghostIn(node, ["scan", "--no-kube", "-o", "json", "--runtime-endpoint", EVIL]));
    await node.writeFile("/etc/crictl.yaml", `runtime-endpoint: ${EVIL}\n`);
    const configured = reportOf(await unghostIn(node, ["scan", "--no-kube", "-o", "json"]));

    for (const report of [flagged, configured]) {
      expect([report.verdict, report.runtime.reachable]).toEqual(["unknown", false]);
      expect(problemsOf(report)).toEqual([
        expect.stringMatching(
          /^cri: the runtime socket \/tmp\/evil\/evil\.sock .*\/tmp\/evil is owned by uid 65534.*chown root: \/tmp\/evil$/,
        ),
      ]);
    }
  });

  test.each([
    ["the directory belongs to another user", "chown 1001:127 /opt/cni/bin", "chown root: /opt/cni/bin"],
    ["the directory can be written by a group", "chmod g+w /opt/cni", "chmod go-w /opt/cni"],
    ["a plugin belongs to another user", "chown -h 1001:127 /opt/cni/bin/bridge", "chown -h root: /opt/cni/bin/bridge"],
  ])("no CNI plugin is run when %s, and the remedy is printed", async (_what, spoil, remedy) => {
    const node = await start();
    const lease = await leakedLease(node);
    await node.check(["sh", "-c", spoil]);

    const { code, stdout } = await unghostIn(node, ["heal", "--yes", "--no-kube", "--min-age", "0s", "-o", "json"]);

    expect(code).toBe(1);
    expect(stdout).toContain(remedy);
    expect(existsSync(node.path(lease.path ?? ""))).toBe(true);
    await node.check(["sh", "-c", remedy]);
    expect((await unghostIn(node, ["heal", "--yes", "--no-kube", "--min-age", "0s"])).code).toBe(0);
    expect(existsSync(node.path(lease.path ?? ""))).toBe(false);
  });

  test("a CNI configuration of another user is not read", async () => {
    const node = await start();
    await node.check(["chown", "1001:127", "/etc/cni/net.d"]);

    const report = reportOf(await unghostIn(node, ["scan", "--no-kube", "-o", "json"]));

    expect(problemsOf(report)).toEqual([
      expect.stringMatching(
        /^cni configuration: .*\/etc\/cni\/net\.d is owned by uid 1001.*chown root: \/etc\/cni\/net\.d$/,
      ),
    ]);
  });
});
