import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Network } from "./network.ts";
import { CNI_BIN_DIR, CNI_CONF_DIR } from "./status.ts";

const NETWORK = "cbr0";
const CNI_VERSION = "1.0.0";
const PLUGINS = ["bridge", "portmap", "host-local", "loopback"] as const;

/**
 * CNI without plugins: writes and removes the files of libcni and host-local below `root`. A damaged result file fails
 * DEL as with libcni 1.1, that is with containerd 1.x: since 2.0 the real one ignores it, but then there would be
 * nothing to break here.
 */
export function fileNetwork(root: string): Network {
  const results = join(root, "var/lib/cni/results");
  const leases = join(root, "var/lib/cni/networks", NETWORK);
  installConfig(root);
  mkdirSync(results, { recursive: true });
  mkdirSync(leases, { recursive: true });
  writeFileSync(join(leases, "lock"), "");
  let last = 1;

  return {
    add: (id) => {
      last += 1;
      const address = `10.88.${last >> 8}.${last & 255}`;
      writeFileSync(join(leases, address), `${id}\r\neth0`);
      writeFileSync(join(leases, "last_reserved_ip.0"), address);
      const attached = { cniVersion: CNI_VERSION, ips: [{ address: `${address}/16`, gateway: "10.88.0.1" }] };
      const loopback = { cniVersion: CNI_VERSION, ips: [{ address: "127.0.0.1/8" }] };
      writeFileSync(join(results, `${NETWORK}-${id}-eth0`), cached(id, NETWORK, "eth0", attached));
      writeFileSync(join(results, `cni-loopback-${id}-lo`), cached(id, "cni-loopback", "lo", loopback));
      return address;
    },
    del: (id) => {
      const result = join(results, `${NETWORK}-${id}-eth0`);
      requireReadable(result);
      for (const name of readdirSync(leases)) {
        const lease = join(leases, name);
        if (readFileSync(lease, "utf8").startsWith(`${id}\r\n`)) rmSync(lease);
      }
      rmSync(result, { force: true });
      rmSync(join(results, `cni-loopback-${id}-lo`), { force: true });
    },
  };
}

/** libcni accepts a missing result; an unreadable one was fatal up to 1.1. */
function requireReadable(path: string): void {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  try {
    JSON.parse(text);
  } catch {
    const cause = text === "" ? "unexpected end of JSON input" : "invalid character in JSON input";
    throw new Error(`failed to get network "${NETWORK}" cached result: decoding version from network config: ${cause}`);
  }
}

function cached(id: string, networkName: string, ifName: string, result: unknown): string {
  const config = Buffer.from(JSON.stringify({ cniVersion: CNI_VERSION, name: networkName })).toString("base64");
  return JSON.stringify({ kind: "cniCacheV1", containerId: id, config, ifName, networkName, result });
}

function installConfig(root: string): void {
  const confDir = join(root, CNI_CONF_DIR);
  const binDir = join(root, CNI_BIN_DIR);
  mkdirSync(confDir, { recursive: true });
  mkdirSync(binDir, { recursive: true });
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.88.0.0/16" }]] };
  const plugins = [
    { type: "bridge", bridge: "cni0", isGateway: true, ipam },
    { type: "portmap", capabilities: { portMappings: true } },
  ];
  writeFileSync(
    join(confDir, "10-cbr0.conflist"),
    JSON.stringify({ cniVersion: CNI_VERSION, name: NETWORK, plugins }, undefined, 2),
  );
  for (const plugin of PLUGINS) writeFileSync(join(binDir, plugin), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
}
