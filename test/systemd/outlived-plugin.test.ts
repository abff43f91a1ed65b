import { expect, test } from "vitest";
import { cgroupWithLimits } from "../../lab/cgroup.ts";
import { bridgeNetwork, CNI_BIN_DIR, CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { until } from "../../lab/poll.ts";
import { MANIFESTS } from "../../lab/systemd/layout.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { type BootedNode, HANG_GUARD_MS, manifest, systemdNode, WAIT_MS } from "./systemd-node.ts";

const PLUGIN_OUTLIVED = "plugin-outlived-runtime";
const HANG = "/run/hang";
/** The bridge plugin, whose ADD does not end while the file exists: with its address already taken. */
const GATE = `#!/bin/sh
if [ "$CNI_COMMAND" = ADD ] && [ -e ${HANG} ]; then
  ${CNI_BIN_DIR}/bridge >/dev/null
  sleep 1000000000
fi
exec ${CNI_BIN_DIR}/bridge
`;

test(
  "an ADD that hung while k3s was restarted is found and ended, and its address is released",
  async () => {
    const node = await systemdNode("k3s", cgroupWithLimits());
    await node.writeFile(`${CNI_BIN_DIR}/gate`, GATE, 0o755);
    const { plugins, ...network } = bridgeNetwork();
    const gated = { ...network, plugins: plugins.map((plugin) => ({ ...plugin, type: "gate" })) };
    await node.writeFile(CNI_CONF_FILE, JSON.stringify(gated));
    await node.startPods(["web-0"]);
    await node.writeFile(HANG, "");
    await node.writeFile(`${MANIFESTS}/web-1.yaml`, manifest("web-1"));
    await until("the ADD hangs", WAIT_MS, async () => ((await adds(node)).length > 1 ? true : undefined));
    await node.check(["rm", HANG]);

    await node.check(["systemctl", "restart", "k3s.service"]);
    const running = await node.waitForPods(["web-0", "web-1"]);

    const [left] = await adds(node);
    expect(left).toBeDefined();
    const found = await until("the ADD is a finding", WAIT_MS, async () =>
      (await node.scan()).findings.find((finding) => finding.class === PLUGIN_OUTLIVED),
    );
    expect(found).toMatchObject({ kind: "leak", subject: { type: "process", pid: left } });
    const heal = await node.exec([DOWNLOADED, "heal", "--yes"]);
    expect(heal.stdout).toContain(PLUGIN_OUTLIVED);
    expect(heal.code).toBe(0);
    expect(await adds(node)).toEqual([]);
    const leases = await node.check(["sh", "-c", `ls /var/lib/cni/networks/${network.name} | grep -c '^10\\.'`]);
    expect(Number(leases)).toBe(running.size);
    await healthyScan(() => node.scan());
    expect(await node.runningPods()).toEqual(running);
  },
  HANG_GUARD_MS,
);

/** Pids of the hung plugin and its children: a runtime that ends kills the plugin itself. */
async function adds(node: BootedNode): Promise<readonly number[]> {
  const { stdout } = await node.exec(["sh", "-c", "grep -lzs '^CNI_COMMAND=ADD' /proc/[0-9]*/environ"]);
  return [...stdout.matchAll(/^\/proc\/(\d+)\//gm)].map(([, pid]) => Number(pid));
}
