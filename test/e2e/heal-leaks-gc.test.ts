import { existsSync, readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { describe, expect } from "vitest";
import { bridgeNetwork, CNI_BIN_DIR } from "../../lab/cni-config.ts";
import { useNetwork } from "../../lab/cni-network.ts";
import { leakedLease } from "../../lab/faults/host-local.ts";
import type { LabNode } from "../../lab/node.ts";
import { parseJson, property } from "../../src/snapshot/json.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { cniFiles, expectAlive, healAll } from "./healed-node.ts";
import { company, runKubelet } from "./scanned-node.ts";

const GC_CALLS = "/var/lib/gc-calls";

/** containerd 1.6 fails every DEL of a plain 1.1.0 (it cannot convert its cached result) and overlooks `cniVersions`. */
const SPEAKING_1_1 = {
  "1.6": { cniVersion: "1.0.0", cniVersions: ["1.0.0", "1.1.0"] },
  "2.3": { cniVersion: "1.1.0" },
} as const;

describe.skipIf(NO_REAL_NODE !== undefined)("heal of leaked addresses by GC", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("asks plugins of CNI 1.1, and names to them all that must stay", async (runtime) => {
    const node = await start({ runtime });
    await bridgeThatCollects(node, ["0.4.0", "1.0.0", "1.1.0"]);
    await useNetwork(node, { ...bridgeNetwork(), ...SPEAKING_1_1[runtime] });
    const beside = await company(node);
    const before = cniFiles(node);
    const leaks = [await leakedLease(node, "10.88.200.1"), await leakedLease(node, "10.88.200.2")];
    // So that nothing but GC can release them.
    await node.writeFile(`${CNI_BIN_DIR}/host-local`, "#!/bin/sh\nexit 1\n", 0o755);

    await healAll(node);

    expect(cniFiles(node)).toEqual(before);
    await expectAlive(node, beside);
    expect(readFileSync(node.path("/var/lib/unghost/journal"), "utf8")).toContain('"detail":"by GC"');
    const calls = readFileSync(node.path(GC_CALLS), "utf8").trim().split("\n").map(parseJson);
    expect(calls).toHaveLength(leaks.length);
    for (const call of calls) {
      expect(call).toMatchObject({ name: bridgeNetwork().name, cniVersion: "1.1.0", type: "bridge" });
      const valid = property(call, "cni.dev/valid-attachments");
      const running = beside.ready.map(({ sandboxId }) => attachment(sandboxId));
      expect(valid).toEqual(expect.arrayContaining(running));
      const keepsEveryLeak = leaks.every(({ sandboxId }) => JSON.stringify(valid).includes(String(sandboxId)));
      expect(keepsEveryLeak).toBe(false);
    }
  });

  eachRuntime("asks nobody while kubelet runs, which may want a pod attached at any moment", async (runtime) => {
    const node = await start({ runtime });
    await bridgeThatCollects(node, ["0.4.0", "1.0.0", "1.1.0"]);
    await useNetwork(node, { ...bridgeNetwork(), ...SPEAKING_1_1[runtime] });
    await runKubelet(node);
    await expectHealedWithoutGc(node);
  });

  eachRuntime("asks no plugin of CNI 1.0", async (runtime) => {
    const node = await start({ runtime });
    await bridgeThatCollects(node, ["0.4.0", "1.0.0"]);
    await expectHealedWithoutGc(node);
  });
});

async function expectHealedWithoutGc(node: LabNode): Promise<void> {
  const beside = await company(node);
  const before = cniFiles(node);
  await leakedLease(node);

  await healAll(node);

  expect(existsSync(node.path(GC_CALLS))).toBe(false);
  expect(cniFiles(node)).toEqual(before);
  await expectAlive(node, beside);
}

function attachment(sandboxId: string): object {
  return { containerID: sandboxId, ifname: "eth0" };
}

/**
 * Debian's bridge knows CNI 1.0 at most, and so this stands in front of it: it translates for it, answers VERSION, and on
 * GC frees the addresses that it is not told to keep.
 */
async function bridgeThatCollects(node: LabNode, supportedVersions: readonly string[]): Promise<void> {
  const bridge = `${CNI_BIN_DIR}/bridge`;
  const script = `#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '${JSON.stringify({ cniVersion: "1.1.0", supportedVersions })}' ;;
STATUS) ;;
GC)
  conf="$(cat)"
  echo "$conf" >>${GC_CALLS}
  for lease in /var/lib/cni/networks/${bridgeNetwork().name}/*.*.*.*; do
    owner="$(tr -d '\\r' <"$lease" | sed '1s/.*/{"containerID":"&",/;2s/.*/"ifname":"&"}/' | tr -d '\\n')"
    case "$conf" in *"$owner"*) ;; *) rm "$lease" ;; esac
  done ;;
*) sed 's/"cniVersion":"1.1.0"/"cniVersion":"1.0.0"/g' | "$0.real" ;;
esac
`;
  await rename(node.path(bridge), node.path(`${bridge}.real`));
  await node.writeFile(bridge, script, 0o755);
}
