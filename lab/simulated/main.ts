import { parseArgs } from "node:util";
import type { SandboxFate } from "./population.ts";
import { startSimulated } from "./runtime.ts";

const FATES = ["ready", "dead", "finished", "half-made"] as const satisfies readonly SandboxFate[];

const { values } = parseArgs({
  options: {
    socket: { type: "string" },
    sandboxes: { type: "string", default: "0" },
    state: { type: "string", default: "ready" },
    "cni-bin-dir": { type: "string" },
  },
});
const state = FATES.find((fate) => fate === values.state);
const count = Number(values.sandboxes);
if (values.socket === undefined || state === undefined || !Number.isInteger(count) || count < 0) {
  console.error(
    `usage: node lab/simulated/main.ts --socket PATH [--sandboxes N] [--state ${FATES.join("|")}] [--cni-bin-dir DIR]`,
  );
  process.exit(64);
}

const runtime = await startSimulated({ socket: values.socket, cniBinDir: values["cni-bin-dir"] });
runtime.addSandboxes(count, { state });
// The parent process waits for the line, then connects.
console.log(`ready unix://${runtime.socket} sandboxes=${count} state=${state}`);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void runtime.close());
