import { expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { HANG_GUARD_MS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const AGENT = "unghost-agent.service";

test(
  "an agent that was stopped stays stopped when k3s restarts, and starts with the next boot",
  async () => {
    const node = await systemdNode("k3s");
    await node.install("--agent");
    const isActive = async () => ((await node.show(AGENT, "ActiveState")) === "active" ? true : undefined);
    await until("the agent runs after the install", WAIT_MS, isActive);

    await node.check(["systemctl", "stop", AGENT]);
    await node.check(["systemctl", "restart", "k3s.service"]);
    expect(await node.show("k3s.service", "ActiveState")).toBe("active");
    expect(await node.show(AGENT, "ActiveState")).toBe("inactive");

    await node.powerCut();
    await node.powerOn();
    await until("the agent runs after the boot", WAIT_MS, isActive);
  },
  HANG_GUARD_MS,
);
