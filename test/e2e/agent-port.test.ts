import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { ask } from "../agent/http/ask.ts";
import { startAgent } from "./running-agent.ts";
import { GUARD_MS, simulatedNode, UNGHOST } from "./unghost.ts";

/** UNGHOST_EXHAUST_SECONDS makes it longer. */
const EXHAUST_MS = 1000 * Number(process.env["UNGHOST_EXHAUST_SECONDS"] ?? 2);
/** kubelet's timeout for the chart's probes. */
const PROBE_MS = 5000;
const EVERY_MS = 50;
const MAX_KB = 160 * 1024;
const BACK_MS = 10_000;

const MODES = [
  "pipelining",
  "reconnecting",
  "slow headers",
  "slow bodies",
  "endless bodies",
  "huge headers",
  "half-open connections",
  "slow readers",
  "event streams",
];

function memoryKb(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

async function isAnswered(address: string): Promise<boolean> {
  const late = sleep(PROBE_MS, undefined, { ref: false });
  const reply = await Promise.race([ask(address, "/healthz").catch(() => undefined), late]);
  return reply?.status === 200;
}

/** Ended with the test. */
function exhaust(mode: string, address: string): { readonly end: () => Promise<void> } {
  const { hostname, port } = new URL(address);
  const child = spawn(process.execPath, ["test/support/exhaust-port.ts", mode, hostname, port], { stdio: "inherit" });
  const ended = once(child, "exit");
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(end);
  return { end };
}

describe("the agent's port", { timeout: GUARD_MS + EXHAUST_MS * 2 }, () => {
  test.each(MODES)("answers probes under %s, in bounded memory, and is itself again right after", async (mode) => {
    const node = await simulatedNode();
    const agent = startAgent(["--no-kube", "--listen", "127.0.0.1:0", "--scan-every", "24h", ...node.where]);
    const address = String((await agent.logged("listening"))["address"]);
    const probes: boolean[] = [];
    let peakKb = 0;

    const attack = exhaust(mode, address);
    const endsAt = performance.now() + EXHAUST_MS;
    while (performance.now() < endsAt) {
      probes.push(await isAnswered(address));
      peakKb = Math.max(peakKb, memoryKb(agent.process.pid));
      await sleep(EVERY_MS);
    }
    await attack.end();
    const endedAt = performance.now();
    while (!(await isAnswered(address))) expect(performance.now() - endedAt).toBeLessThan(BACK_MS);

    const answered = probes.filter(Boolean).length / probes.length;
    expect.soft(answered).toBeGreaterThanOrEqual(0.95);
    expect.soft(peakKb).toBeLessThanOrEqual(MAX_KB);
    expect((await ask(address, "/metrics")).text).toContain("unghost_build_info");
  });
});

/** In a network namespace of its own, which has this IPv6 address and loopback only. */
const IN_IPV6_NETWORK = `
ip link set lo up
ip address add fd00::10/128 dev lo nodad
"$0" agent --no-kube --listen="$1" --host-root="$2" >&2 &
trap "kill $!" EXIT
get() { curl -fsSg --retry 100 --retry-delay 1 --retry-connrefused "http://$1:20258$2"; }
get "[fd00::10]" /healthz
get 127.0.0.1 /healthz
get "[fd00::10]" /metrics | grep -c ^unghost_build_info`;

test.each(["[fd00::10]:20258", "fd00::10:20258"])(
  "on a node with IPv6 only, --listen=%s serves that address, and loopback beside it",
  async (listen) => {
    const node = await simulatedNode();

    const { stdout, stderr } = await run(
      ["unshare", "--map-root-user", "--net", "sh", "-euc", IN_IPV6_NETWORK, UNGHOST, listen, node.root],
      { timeoutMs: GUARD_MS },
    );

    expect(stdout, stderr).toBe("ok\nok\n1\n");
  },
  GUARD_MS * 2,
);
