import { lstatSync } from "node:fs";
import type { Finding } from "../../evidence/finding.ts";
import { STEPS, type Step, type StepArea, type StepKind, type StepOf } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/paths.ts";
import type { FileTools } from "../steps/files.ts";
import type { NetworkTools } from "../steps/networks.ts";
import type { PodTools } from "../steps/pods.ts";
import type { ProcessTools } from "../steps/processes.ts";
import type { RecordTools } from "../steps/records.ts";
import { SANDBOX_STEPS, type SandboxTools } from "../steps/sandboxes.ts";
import { attempted, type Runs, type StepResult } from "../steps/step-result.ts";

/** The dependencies of all steps: each area declares its own part. */
export type StepTools = SandboxTools & FileTools & ProcessTools & PodTools & NetworkTools & RecordTools;

/** Steps are loaded on demand: most heals only remove, and some load half of Node's library. */
const AREAS: { readonly [Area in StepArea]: () => Promise<Runs<Area, StepTools>> } = {
  sandboxes: () => Promise.resolve(SANDBOX_STEPS),
  files: async () => (await import("../steps/files.ts")).FILE_STEPS,
  processes: async () => (await import("../steps/processes.ts")).PROCESS_STEPS,
  pods: async () => (await import("../steps/pods.ts")).POD_STEPS,
  networks: async () => (await import("../steps/networks.ts")).NETWORK_STEPS,
  records: async () => (await import("../steps/records.ts")).RECORD_STEPS,
};

/** Executes one step. An error of the runtime is a result, not an exception. */
export function runStep(step: Step, finding: Finding, tools: StepTools): Promise<StepResult> {
  return attempted(() => dispatch(step, finding, tools));
}

/** The cleanup after a removal is mostly not needed, which is checked without loading the step. */
async function dispatch<Kind extends StepKind>(
  step: StepOf<Kind>,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const { area, paths } = STEPS[step.kind];
  if (paths?.(step).every((path) => isGone(path, tools))) return { kind: "unneeded" };
  const runs: Partial<Runs<StepArea, StepTools>> = await AREAS[area]();
  const run = runs[step.kind];
  if (run === undefined) throw new Error(`no ${area} step is called ${step.kind}`);
  return await run(step, finding, tools);
}

/** The steps for which the runtime calls network plugins. */
export function callsPlugins(step: Step): step is StepOf<"stop-sandbox" | "remove-sandbox"> {
  return step.kind === "stop-sandbox" || step.kind === "remove-sandbox";
}

/** Whether the path is absent. An unreadable path is left to the step. */
function isGone(path: string, { hostRoot }: { readonly hostRoot: string }): boolean {
  try {
    return lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}
