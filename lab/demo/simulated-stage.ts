import { readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { openCri } from "../../src/runtime/cri.ts";
import { run } from "../command.ts";
import { startSimulatedNode } from "../simulated/node.ts";
import { ownOneLiner } from "./own-one-liner.ts";
import { CAST, isAddress, type Stage } from "./stage.ts";
import { unghostProgram } from "./unghost-program.ts";

const COMMAND_MS = 30_000;

/** For machines that cannot run a real node; `why` names what is missing. */
export async function simulatedStage(why: string, env: Readonly<Record<string, string>>): Promise<Stage> {
  const program = unghostProgram();
  const node = await startSimulatedNode();
  let cri = openCri(node.socket);
  let webIds: readonly string[] = [];
  // However this process ends, the node's directory is removed.
  const removeRoot = (): void => rmSync(node.root, { recursive: true, force: true });
  process.once("exit", removeRoot);

  return {
    description: `a simulated runtime with containerd's rules about names, and nothing that runs: ${why}`,
    get cri() {
      return cri;
    },
    createPods: async () => {
      for (const { namespace, name, containers, finished } of CAST) {
        const state = finished ? "finished" : "ready";
        const made = { namespaces: [namespace], namePrefix: name, containersEach: containers.length, state } as const;
        const ids = node.addSandboxes(1, made);
        if (name === "web") webIds = ids;
      }
    },
    powerCutAndBoot: async () => {
      cri.close();
      // It cannot be stopped while its machine is on; like a starting containerd, it refuses every call.
      node.script({ mode: "starting" });
      await node.powerCut();
      cri = openCri(node.socket);
    },
    oneLiner: async () => ({
      ...(await ownOneLiner(node.socket)),
      madeBy: "unghost's own client (crictl cannot talk to the simulated runtime)",
    }),
    startRuntime: async () => node.script({ mode: "serving" }),
    filesOnDisk: () => ({
      results: readdirSync(join(node.root, "var/lib/cni/results")).length,
      leases: readdirSync(join(node.root, "var/lib/cni/networks/cbr0")).filter(isAddress).length,
    }),
    emptyResultOfWeb: async () => {
      const dir = join(node.root, "var/lib/cni/results");
      const [web] = webIds;
      const file = readdirSync(dir).find((name) => web !== undefined && name.startsWith("cbr0-") && name.includes(web));
      if (file !== undefined) truncateSync(join(dir, file), 0);
    },
    unghost: async (args) => {
      const where = ["--host-root", node.root, "--runtime-endpoint", `unix://${node.socket}`];
      const ran = await run([...program.command, ...args, ...where], { env, timeoutMs: COMMAND_MS });
      return { code: ran.code, output: ran.stdout + ran.stderr, typed: [program.shown, ...args, ...where].join(" ") };
    },
    clear: async () => {
      cri.close();
      await node.close();
      process.off("exit", removeRoot);
    },
  };
}
