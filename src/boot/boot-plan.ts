import { classById, classes } from "../classes/index.ts";
import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { diagnoseOffline } from "../diagnose/offline.ts";
import { valueOr } from "../host/source.ts";
import { readBoot } from "../snapshot/boot.ts";
import { observeOffline } from "../snapshot/observe-offline.ts";
import type { BootOptions } from "./boot.ts";
import { planRound } from "./heal-once.ts";
import { brokenCaches } from "./preflight.ts";
import type { RuntimeFiles } from "./runtime-files.ts";
import { bootMarker, chooseWay, type Way } from "./way.ts";

/** What `unghost boot` would do now. */
export interface BootPlan {
  readonly apiVersion: "unghost.dev/v1";
  readonly kind: "BootPlan";
  readonly boot: string;
  readonly mode: "before" | "after";
  readonly way: Way["kind"];
  readonly reason: string;
  /** Findings that it would heal. */
  readonly heal: readonly string[];
  /** Findings that it would skip. */
  readonly leave: readonly string[];
}

type Content = Pick<BootPlan, "way" | "reason" | "heal" | "leave">;
type PlanOptions = Pick<BootOptions, "mode" | "deadlineMs" | "force" | "asked" | "env" | "stateDir" | "runDir"> & {
  readonly heal: Pick<BootOptions["heal"], "observe" | "policy">;
};

/** Decides like `bootOnce`, and changes nothing: no marker, no report, no journal, and no runtime is started. */
export async function planBoot(options: PlanOptions): Promise<BootPlan> {
  const { observe } = options.heal;
  const boot = valueOr(readBoot({ root: observe.hostRoot, now: new Date() }), undefined);
  const marker = bootMarker(options.runDir, options.mode, boot?.id);
  const deadline = AbortSignal.timeout(options.deadlineMs);
  const way = await chooseWay({ ...options, observe, marker, bootId: boot?.id ?? "", deadline });
  const content = await contentOf(way, options, boot?.startedAt, deadline);
  return { apiVersion: "unghost.dev/v1", kind: "BootPlan", boot: boot?.id ?? "", mode: options.mode, ...content };
}

async function contentOf(
  way: Way,
  options: PlanOptions,
  bootStartedAt: Date | undefined,
  deadline: AbortSignal,
): Promise<Content> {
  switch (way.kind) {
    case "nothing":
    case "failed":
      return { way: way.kind, reason: way.reason, heal: [], leave: [] };
    case "through-runtime":
      return await throughRuntime(options);
    case "caches-only": {
      const broken =
        bootStartedAt === undefined ? [] : await brokenCaches(options.heal.observe, bootStartedAt, deadline);
      return {
        way: way.kind,
        reason: way.reason,
        heal: broken.map(({ class: of, path }) => `${of}/${path}`),
        leave: [],
      };
    }
    case "borrow":
      return await throughBorrowed(way.files, options.heal.observe);
  }
}

/** From its records: no runtime is started for it. */
async function throughBorrowed({ binary, root }: RuntimeFiles, observe: ObserveNodeOptions): Promise<Content> {
  const facts = await observeOffline({ ...observe, containerdRoot: root, containerdVersion: undefined });
  const heal = classes.flatMap(({ id: of, healedAfterStart }) =>
    (healedAfterStart?.(facts) ?? []).map((id) => `${of}/${id}`),
  );
  const others = diagnoseOffline(facts).filter(({ class: of }) => classById(of)?.healedAfterStart === undefined);
  const reason = `${binary} would be started over ${root} on a private socket`;
  return { way: "borrow", reason, heal, leave: others.map(({ id }) => id) };
}

async function throughRuntime({ heal, env, mode }: PlanOptions): Promise<Content> {
  const round = await planRound({ ...heal, env }, false);
  if (round.kind === "failed") {
    // --after waits for a runtime; a dry run does not.
    const waits = mode === "after" ? "; boot --after waits for it until its deadline" : "";
    return { way: "failed", reason: `the runtime does not answer: ${round.reason}${waits}`, heal: [], leave: [] };
  }
  const { diagnosis, plan } = round.planned;
  const healed = round.kind === "left" ? [] : plan.actions.map(({ finding }) => finding.id);
  const leave = diagnosis.findings.map(({ id }) => id).filter((id) => !healed.includes(id));
  return { way: "through-runtime", reason: "the runtime answers", heal: healed, leave };
}
