import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import type { Narrator } from "./narrator.ts";
import { CALL, ONE_LINER, type Stage } from "./stage.ts";

/** One step of the story. Each stands on what the ones before it did to the node. */
export type Scene = (stage: Stage, tell: Narrator) => Promise<void>;

/** The story, in order. */
export const SCENES: readonly Scene[] = [aNodeAtWork, powerCut, theOneLiner, whatIsLeft, whatUnghostSees];

async function aNodeAtWork(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("A node at work");
  tell.say(`The node: ${stage.description}.`);
  await stage.createPods();
  await showPods(stage, tell);
  tell.say("backup has finished: NotReady, and kept on purpose, because `kubectl logs` reads its container.");
}

async function powerCut(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("The power goes, and comes back");
  await stage.powerCutAndBoot();
  const { results, leases } = stage.filesOnDisk();
  tell.say("Every process, every mount and every network namespace is gone. The disk is not:");
  tell.table(
    ["LEFT ON DISK", ""],
    [
      ["CNI result files", String(results)],
      ["addresses taken", String(leases)],
      ["containerd's records", "all"],
    ],
  );
}

async function theOneLiner(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("The one-liner that everybody copies, as ExecStartPre");
  tell.say(
    "The service manager runs ExecStartPre before it starts the runtime. So this asks a runtime that is not there:",
  );
  const { code, output, madeBy } = await stage.oneLiner();
  tell.command(ONE_LINER, output.trimEnd() || "(prints nothing)");
  tell.say(`(The calls were made by ${madeBy}.)`);
  tell.say(`It ends with ${code}, so the unit looks green. Nothing was removed.`);
}

async function whatIsLeft(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("The runtime starts: what is left");
  await stage.startRuntime();
  await showPods(stage, tell);
  const pods = await stage.cri.listPodSandbox(undefined, CALL);
  const web = pods.find(({ metadata }) => metadata?.namespace === "shop" && metadata.name.startsWith("web"));
  if (web?.metadata === undefined) throw new Error("the demo's pod web is gone, which no power cut does");
  tell.say("Dead, and still the owners of their names. Creating web again under the name that it had:");
  const refusal = await refusalOf(() =>
    stage.cri.runPodSandbox({ metadata: web.metadata, hostname: "web", labels: web.labels }, CALL),
  );
  tell.command("RunPodSandbox shop/web", refusal);
}

async function whatUnghostSees(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("What unghost sees");
  const { code, output, typed } = await stage.unghost(["scan", "--no-kube"]);
  tell.command(typed, output);
  tell.say(`Exit ${code}: 0 would be healthy, 1 means findings, 2 could not tell. Nothing was changed.`);
  tell.say(
    "The three that died with the node are ghosts, with the evidence for it. backup is not: it ended by itself.",
  );
}

async function showPods(stage: Stage, tell: Narrator): Promise<void> {
  const [sandboxes, containers] = await Promise.all([
    stage.cri.listPodSandbox(undefined, CALL),
    stage.cri.listContainers(undefined, CALL),
  ]);
  const rows = sandboxes.map(({ id, metadata, state }) => [
    `${metadata?.namespace}/${metadata?.name}`,
    state === PodSandboxState.SANDBOX_READY ? "Ready" : "NotReady",
    id.slice(0, 13),
    containers
      .filter(({ podSandboxId }) => podSandboxId === id)
      .map((container) => container.metadata?.name)
      .join(", "),
  ]);
  tell.table(["POD", "SANDBOX", "ID", "CONTAINERS"], rows.toSorted(byFirst));
}

function byFirst([one = ""]: readonly string[], [other = ""]: readonly string[]): number {
  return one < other ? -1 : 1;
}

async function refusalOf(call: () => Promise<string>): Promise<string> {
  try {
    return `created ${await call()}`;
  } catch (error) {
    if (error instanceof RuntimeError) return error.text;
    throw error;
  }
}
