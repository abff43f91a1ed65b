import { describe } from "vitest";
import { startSimulated } from "../../lab/simulated/runtime.ts";
import { tempDir } from "../support/temp-dir.ts";
import { criContract } from "./cri-contract.ts";

describe("the clients on the simulated runtime", () => {
  criContract(
    {
      runtimeName: /simulated/,
      runtimeVersion: /^2\.3/,
      stopOfUnknown: "succeeds",
      containerEvents: true,
      sandboxStore: true,
    },
    async () => {
      const dir = tempDir();
      const runtime = await startSimulated({ socket: dir.join("cri.sock") });
      return {
        socket: () => runtime.socket,
        powerCut: () => runtime.powerCut(),
        restartRuntime: () => runtime.restart(),
        slowStops: () => {
          runtime.script({ latencyMs: { stopContainer: 30_000 } });
          return () => runtime.script({ latencyMs: {} });
        },
        close: async () => {
          await runtime.close();
          dir.remove();
        },
      };
    },
  );
});
