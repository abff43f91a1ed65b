import { describe, test } from "vitest";
import { startNode } from "../../lab/node.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { ensureContainerd, whyNoRealNode } from "../../lab/tools.ts";
import type { CriBackend, CriManners } from "../runtime/cri-backend.ts";
import { criContract } from "../runtime/cri-contract.ts";

const noNode = whyNoRealNode();
const containerd2 = noNode === undefined ? await ensureContainerd() : { available: false as const, reason: noNode };
const noContainerd2 = containerd2.available ? undefined : containerd2.reason;

const VERSIONS: readonly {
  readonly version: RuntimeVersion;
  readonly why?: string | undefined;
  readonly manners: CriManners;
}[] = [
  {
    version: "1.6",
    why: noNode,
    manners: {
      runtimeName: /^containerd$/,
      runtimeVersion: /^v?1\.6\./,
      stopOfUnknown: "not-found",
      containerEvents: false,
      sandboxStore: false,
    },
  },
  {
    version: "2.3",
    why: noContainerd2,
    manners: {
      runtimeName: /^containerd$/,
      runtimeVersion: /^v?2\.3\./,
      stopOfUnknown: "succeeds",
      containerEvents: true,
      sandboxStore: true,
    },
  },
];

for (const { version, why, manners } of VERSIONS) {
  describe(`the clients on containerd ${version}`, () => {
    if (why === undefined) criContract(manners, () => openNode(version));
    else test.skip(`not tried: ${why}`, () => {});
  });
}

async function openNode(runtime: RuntimeVersion): Promise<CriBackend> {
  const node = await startNode({ runtime });
  return {
    socket: () => node.socket,
    powerCut: async () => {
      await node.powerCut();
      await node.powerOn();
    },
    restartRuntime: () => node.restartRuntime(),
    slowStops: () => () => {},
    close: () => node.destroy(),
  };
}
