import { sandboxId } from "../../src/node/types/ids.ts";
import { bridgeNetwork, CNI_BIN_DIR } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import { unknownId, writeOld } from "./host-local.ts";
import type { Injected } from "./injected.ts";

/** The file with the pids of a hung plugin, so that a test can check and end them. */
export const STUCK_PIDS = "/var/stuck-pids";

/** Ways in which a plugin hangs. Each is the body of a shell script. */
export const STUCK_PLUGINS = {
  "ignores SIGTERM": "trap '' TERM; sleep 100000; sleep 100000",
  "exits and leaves its pipes to a child": "sleep 100000 & exit 1",
  "hangs with a child that ignores SIGTERM and holds its pipes":
    "(trap '' TERM; sleep 100000; sleep 100000) & echo $! >>$pids; trap '' TERM; sleep 100000; sleep 100000",
  "hangs with a daemon in a session of its own":
    "setsid sh -c 'trap \"\" TERM; echo $$ >>'$pids'; sleep 100000; sleep 100000' & trap '' TERM; sleep 100000; sleep 100000",
  "stops itself": "kill -STOP $$; sleep 100000",
  "prints without end": "trap '' TERM; yes",
} as const;

export type StuckPlugin = keyof typeof STUCK_PLUGINS;

/** An address of a sandbox that does not exist, whose cached chain contains a hanging plugin. */
export async function leaseWithStuckPlugin(node: LabNode, how: StuckPlugin, address: string): Promise<Injected> {
  const id = unknownId();
  const plugin = `stuck-${address}`;
  const network = bridgeNetwork();
  const chain = { ...network, plugins: [...network.plugins, { type: plugin }] };
  const script = `#!/bin/sh\npids=${STUCK_PIDS}\necho $$ >>$pids\n${STUCK_PLUGINS[how]}\n`;
  await node.writeFile(`${CNI_BIN_DIR}/${plugin}`, script, 0o755);
  await writeOld(node, `/var/lib/cni/networks/${network.name}/${address}`, `${id}\r\neth0`);
  await writeOld(
    node,
    `/var/lib/cni/results/${network.name}-${id}-eth0`,
    JSON.stringify({
      kind: "cniCacheV1",
      containerId: id,
      config: Buffer.from(JSON.stringify(chain)).toString("base64"),
      ifName: "eth0",
      networkName: network.name,
      result: { cniVersion: network.cniVersion, dns: {} },
    }),
  );
  return { fault: "stuck-plugin", did: `leased ${address} with a plugin that ${how}`, sandboxId: sandboxId(id) };
}
