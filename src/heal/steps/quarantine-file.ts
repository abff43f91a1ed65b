import { basename, dirname } from "node:path";
import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { parseJson } from "../../host/json.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { judgeResult, parseResultName } from "../../snapshot/cni-results.ts";
import { judgeMultusCache } from "../../snapshot/multus-cache.ts";
import { CORRUPT, isJsonObject, type Judgement, OK } from "../../snapshot/scratch-files.ts";
import { findReference, type ProofTools, proveDead, type ReferenceTools } from "../execution/prove.ts";
import type { HealContext } from "../execution/session.ts";
import { identifyFile } from "../files/file-identity.ts";
import type { HealReason } from "../heal-reason.ts";
import { quarantineFile } from "../quarantine/quarantine.ts";
import { notMoved, reasonFor, refused, type StepResult } from "./step-result.ts";

export interface QuarantineTools extends HealContext, ProofTools, ReferenceTools {
  readonly facts: ProofTools["facts"] & ReferenceTools["facts"];
  readonly waits: ProofTools["waits"] & ReferenceTools["waits"];
}

type QuarantineStep = Extract<Step, { kind: "quarantine-file" }>;

/** Identify, prove, move: a file that changes in between is no longer the proven one. */
export async function quarantineStep(
  step: QuarantineStep,
  finding: Finding,
  tools: QuarantineTools,
): Promise<StepResult> {
  const expected = await identifyFile(tools.hostRoot, step.path);
  if (!expected.ok) return refused({ code: "file-refused", refusal: expected.refusal });
  const objection = await objectionTo(step, tools);
  if (objection !== undefined) return refused(objection);
  const moved = await quarantineFile(tools, { ...reasonFor(finding), path: step.path, expected: expected.value });
  if (moved.outcome === "healed") return { kind: "done", journalId: moved.id, undoable: true };
  return notMoved(moved);
}

async function objectionTo(step: QuarantineStep, tools: QuarantineTools): Promise<HealReason | undefined> {
  const [id] = /[0-9a-f]{64}/.exec(basename(step.path)) ?? [];
  if (id === undefined) return { code: "names-no-sandbox", path: step.path };
  if (step.health === "orphaned") {
    const reference = await findReference(id, tools);
    return reference === undefined ? undefined : { code: "still-referenced", by: reference };
  }
  if (!isStillBroken(step, tools)) return { code: "file-not-broken", path: step.path };
  const proof = await proveDead(id, tools);
  return proof.state === "not-dead" ? { code: "not-dead", liveness: proof.liveness } : undefined;
}

function isStillBroken({ path, health }: QuarantineStep, tools: HealContext): boolean {
  const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
  if (file.kind !== "content") return false;
  if (health === "stripped") return "strippedKeys" in judgeMultusCache(file.text);
  return judge(path, file.text).health === "corrupt";
}

function judge(path: string, text: string): Judgement {
  const name = parseResultName(basename(path));
  if (name !== undefined) return judgeResult(text, name);
  if (basename(dirname(path)) === "flannel") return isJsonObject(parseJson(text)) ? OK : CORRUPT;
  return judgeMultusCache(text);
}
