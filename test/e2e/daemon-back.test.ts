import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { bridgeNetwork } from "../../lab/cni-config.ts";
import {
  DELEGATE,
  DELEGATE_SOCKET,
  installDelegate,
  startDelegateDaemon,
  stopDelegateDaemon,
} from "../../lab/delegate-daemon.ts";
import { runPods } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { tempDir } from "../support/temp-dir.ts";
import { expectGone } from "./healed-node.ts";
import { BY_TRIGGERS_ALONE, healedBy, startAgent } from "./running-agent.ts";

const PODS = 5;
/** A failed attempt would wait for an hour. */
const CONFIG = `agent:
  classes:
    dead-after-crash: { mode: heal, coolDown: 1h }
`;

describe.skipIf(NO_REAL_NODE !== undefined)("the daemon of a network plugin", { timeout: HANG_GUARD_MS }, () => {
  test("that is back: what failed because of it is healed at once, in spite of its back-off", async () => {
    const network = bridgeNetwork();
    const [bridge] = network.plugins;
    const plugin = { ...bridge, type: DELEGATE, server_socket: DELEGATE_SOCKET, asks_daemon: true };
    const node = await start({ cni: { ...network, plugins: [plugin] } });
    await installDelegate(node);
    await startDelegateDaemon(node);
    const pods = await runPods(node, PODS);
    await node.powerCut();
    await node.powerOn();
    // go-cni takes a DEL that fails with “no such file” for done: the socket's file has to exist.
    await startDelegateDaemon(node);
    await stopDelegateDaemon(node);
    const dir = tempDir();
    writeFileSync(dir.join("agent.yaml"), CONFIG);

    const root = `/proc/${node.initPid}/root`;
    const agent = startAgent([...BY_TRIGGERS_ALONE, "--host-root", root, "--config", dir.join("agent.yaml")]);
    await agent.logged("healing failed", ({ reason }) => reason?.includes("kube-ovn-daemon.sock") === true);
    await new Promise((resolve) => setTimeout(resolve, 5000));
    expect(healedBy(agent)).toEqual([]);
    const failures = () => agent.lines.filter(({ msg }) => msg === "healing failed").length;
    const before = failures();

    const backAt = performance.now();
    await startDelegateDaemon(node);
    await agent.logged("what network calls wait for is back", ({ what }) => what === DELEGATE_SOCKET);
    await agent.logged("ghost healed", () => healedBy(agent).length === PODS);

    expect(performance.now() - backAt).toBeLessThan(30_000);
    expect(failures()).toBe(before);
    await expectGone(node, ...pods);
    dir.remove();
  });
});
