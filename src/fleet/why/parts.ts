import type { FailureClass } from "../../classes/failure-class.ts";
import { truncate } from "../../host/text.ts";
import type { Cause, CauseCode, Evidence } from "./cause.ts";
import type { Condition, Warning, WhyFacts } from "./facts.ts";

export const RETRIED = "kubelet tries again with a growing delay, and nothing else changes without a repair";

export function healCommand(
  { namespace, name }: WhyFacts,
  node: string | null | undefined,
  failureClass: FailureClass | undefined,
): string {
  if (failureClass?.treatment.mode === "none") return failureClass.byHand[0] ?? failureClass.treatment.steps[0] ?? "";
  const action = failureClass?.treatment.mode === "automatic" ? "heal" : "scan";
  return `on ${node ?? "its node"}: unghost ${action} ${namespace}/${name}`;
}

export function conditionNamed(
  conditions: readonly Condition[] | null | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export function evidenceOf({ by, reason, message, count, about }: Warning): Evidence {
  const times = count > 1 ? ` ${count} times` : "";
  return { source: about.startsWith("Pod/") ? by : `${by}, about ${about}`, fact: `${reason}${times}: ${message}` };
}

type Parts = Partial<Pick<Cause, "evidence" | "since" | "remedy">> & Pick<Cause, "next">;

export function notOurs(code: CauseCode, what: string, parts: Parts): Cause {
  return { code, what, isOurs: false, evidence: [], blocks: [], ...parts };
}

const LONGEST = 300;

export function shortest(message: string): string {
  return truncate(message.trim().split("\n")[0] ?? "", LONGEST);
}
