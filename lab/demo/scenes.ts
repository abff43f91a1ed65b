import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import type { Narrator } from "./narrator.ts";
import { CALL, ONE_LINER, type Stage } from "./stage.ts";

/** One step of the story. Each depends on the previous ones. */
export type Scene = (stage: Stage, tell: Narrator) => Promise<void>;

/** The story, in order. */
export const SCENES: readonly Scene[] = [
  aNodeAtWork,
  powerCut,
  theOneLiner,
  whatIsLeft,
  whatUnghostSees,
  unghostHeals,
  theInvisibleHolder,
  theMultusDeadlock,
];

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
  await stage.emptyResultOfWeb();
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
  tell.say("One of the result files, web's, is empty: libcni does not sync them, and the cut came too soon.");
}

async function theOneLiner(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("The one-liner that everybody copies, as ExecStartPre");
  tell.say(
    "The service manager runs ExecStartPre before it starts the runtime. So this asks a runtime that is not there:",
  );
  const { code, output, madeBy } = await stage.oneLiner();
  tell.command(ONE_LINER, output.trimEnd() || "(prints nothing)");
  tell.say(`(The calls were made by ${madeBy}.)`);
  tell.say(`It ends with ${code}, so the unit counts as successful. Nothing was removed.`);
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
  tell.say(
    `Exit ${code}: 0 would be healthy, 1 means findings, 2 means that the scan could not decide. Nothing was changed.`,
  );
  tell.say("The three that died with the node are ghosts, with the evidence for it. backup is not: it finished.");
}

const HEAL = ["heal", "--no-kube", "--yes", "--min-age", "0s"];

async function unghostHeals(stage: Stage, tell: Narrator): Promise<void> {
  tell.heading("unghost heals");
  const before = await stage.cri.listPodSandbox(undefined, CALL);
  const web = before.find(({ metadata }) => metadata?.namespace === "shop" && metadata.name.startsWith("web"));
  const healed = await stage.unghost(HEAL);
  tell.command(healed.typed, afterPlan(healed.output));
  tell.say("The runtime released its own names; the empty file is in quarantine, and so are the logs of what went:");
  const history = await stage.unghost(["history"]);
  tell.command(history.typed, history.output);
  await showPods(stage, tell);
  if (web?.metadata === undefined) return;
  tell.say("And web, under the name that was refused before:");
  const answer = await refusalOf(() =>
    stage.cri.runPodSandbox({ metadata: web.metadata, hostname: "web", labels: web.labels }, CALL),
  );
  tell.command("RunPodSandbox shop/web", answer);
}

async function theInvisibleHolder(stage: Stage, tell: Narrator): Promise<void> {
  if (stage.hungCreation === undefined) return;
  tell.heading("The holder that no list shows");
  const { pod, reservedName } = await stage.hungCreation();
  tell.say(`A network plugin hangs while shop/${pod.name} is created, and kubelet gives up waiting. The next try:`);
  const retry = { metadata: { ...pod }, hostname: pod.name };
  tell.command(`RunPodSandbox shop/${pod.name}`, await refusalOf(() => stage.cri.runPodSandbox(retry, CALL)));
  tell.say("`crictl pods` lists nothing by that id, so there is nothing to remove. unghost checks the processes:");
  const healed = await stage.unghost([...HEAL, "--inflight-grace", "0s"]);
  tell.command(healed.typed, healed.output);
  tell.say(`(The grace of ten minutes is waived for the demo.) ${reservedName} is free again:`);
  tell.command(`RunPodSandbox shop/${pod.name}`, await refusalOf(() => stage.cri.runPodSandbox(retry, CALL)));
}

async function theMultusDeadlock(stage: Stage, tell: Narrator): Promise<void> {
  if (stage.multusDeadlock === undefined) return;
  tell.heading("The deadlock under multus");
  const ghost = await stage.multusDeadlock();
  if ("unavailable" in ghost) {
    tell.say(`Left out: ${ghost.unavailable}.`);
    return;
  }
  tell.say(`A delegate could not set shop/${ghost.pod.name} up, and cannot take down what it never set up:`);
  const [listed] = await stage.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": ghost.pod.uid } }, CALL);
  const id = listed?.id ?? "";
  const refusal = await refusalOf(async () => {
    await stage.cri.removePodSandbox(id, CALL);
    return "nothing, it was removed";
  });
  tell.command(`crictl rmp --force ${id.slice(0, 13)}`, refusal);
  const healed = await stage.unghost(HEAL);
  tell.command(healed.typed, healed.output);
}

/** The plan repeats the output of the scan before it. */
function afterPlan(output: string): string {
  const lines = output.split("\n");
  const first = lines.findIndex((line) => /^(healed|failed|refused|skipped) /.test(line));
  return first < 0 ? output : lines.slice(first).join("\n");
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
