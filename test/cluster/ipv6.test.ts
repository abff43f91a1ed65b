import { afterEach, expect, test } from "vitest";
import { AGENT_KUBECONFIG, admitAgents } from "../../lab/cluster/agent.ts";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { IPV6 } from "../../lab/cluster/network.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { reportOf } from "../e2e/unghost.ts";
import { installChart, NAMESPACE, throughPortForward } from "./agent-pod.ts";
import { HANG_GUARD_MS, stopFails, unghostOn, WAIT_MS } from "./lab-cluster.ts";
import { makeGhost } from "./pod-ghost.ts";

let story: Cluster | undefined;
afterEach(async () => {
  await story?.destroy();
  story = undefined;
}, HANG_GUARD_MS);

test(
  "a cluster without IPv4: the chart's agent starts, listens, reaches the API and heals; the command line reads it",
  async () => {
    story = await startCluster({ addresses: IPV6, kubelet: { runtimeRequestTimeout: "5s" } });
    const { node } = story;
    expect(node.ip).toContain("fd00:77::");
    await installChart(story, "listen=node", "agent.defaults.minAge=2s");
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    const secret = ["get", "secret", "unghost-token", `--namespace=${NAMESPACE}`, "-o=jsonpath={.data.token}"];
    const token = Buffer.from(await story.kubectl(...secret), "base64").toString();
    const ask = (...more: readonly string[]) =>
      node.lab.check(["curl", "-gsS", "-o", "/dev/null", "-w", "%{http_code}", ...more]);
    const metrics = `http://[${node.ip}]:20258/metrics`;
    expect(await ask(metrics)).toBe("401");
    expect(await ask(metrics, "-H", `Authorization: Bearer ${token}`)).toBe("200");
    expect(await ask("http://127.0.0.1:20258/healthz")).toBe("200");
    const forward = `kubectl --namespace ${NAMESPACE} port-forward daemonset/unghost-agent 20258`;
    expect(await throughPortForward(story, forward, "/healthz")).not.toBe("");

    await story.apply(podObjects(["web-0"], node.name));
    const [pod] = await story.waitForPods(1, isReady);
    expect(pod?.status.podIP).toContain("fd00:88:");
    await makeGhost(node, "web-0");
    await stopFails(node, ["web-0"]);
    await until("the event is there", WAIT_MS, async () => {
      const reasons = await story?.kubectl("get", "events", "-A", "-o=jsonpath={.items[*].reason}");
      return reasons?.includes("GhostHealed") === true ? true : undefined;
    });

    await admitAgents(story);
    expect(await node.lab.check(["cat", AGENT_KUBECONFIG])).toContain("https://[fd00:77::1]:443");
    const report = reportOf(await unghostOn(node, "scan", "-o", "json"));
    expect(report.kubernetes).toEqual({ source: "api" });
  },
  HANG_GUARD_MS,
);
