import { durationInWords, printable } from "../../host/text.ts";
import { wrap } from "../../report/words.ts";
import type { Printable } from "../output.ts";
import type { Cause, CauseCode } from "./cause.ts";
import type { WhyFacts } from "./facts.ts";

const NOTHING_WRONG: ReadonlySet<CauseCode> = new Set(["running", "finished", "starting"]);

/** 0 nothing is wrong, 1 there is a cause, 2 it is unknown. */
export function whyExitCode({ code }: Cause): 0 | 1 | 2 {
  if (NOTHING_WRONG.has(code)) return 0;
  return code === "unknown" || code === "no-pod" ? 2 : 1;
}

export function printableWhy(facts: WhyFacts, cause: Cause, columns: number): Printable {
  return {
    document: whyDocument(facts, cause),
    names: [`pod/${facts.name}`],
    table: () => whyLines(facts, cause, columns),
  };
}

/** The JSON contract of `unghost fleet why`. */
function whyDocument(facts: WhyFacts, cause: Cause) {
  const { namespace, name, pod } = facts;
  const { code, class: id, what, isOurs, evidence, since, blocks, next, remedy } = cause;
  const item = { code, class: id, what, isOurs, evidence, since: since?.toISOString(), blocks, next, remedy };
  return {
    apiVersion: "unghost.dev/v1",
    kind: "PodDiagnosis",
    pod: { namespace, name, uid: pod?.metadata.uid },
    node: pod?.spec.nodeName ?? undefined,
    items: [item],
    problems: problemsIn(facts),
  };
}

function problemsIn({ problems, unreadLog }: WhyFacts): readonly string[] {
  return unreadLog === undefined ? problems : [...problems, unreadLog];
}

/** The cause first. */
function whyLines(facts: WhyFacts, cause: Cause, columns: number): readonly string[] {
  const { pod, now } = facts;
  const node = pod?.spec.nodeName;
  const head = `${facts.namespace}/${facts.name}: ${cause.what}`;
  const entries: readonly (readonly [label: string, text: string])[] = [
    ...(cause.class === undefined ? [] : [["Class", `${cause.class} (unghost explain ${cause.class})`] as const]),
    ...(node ? [["Node", node] as const] : []),
    ...(cause.since === undefined ? [] : [["Since", sinceWords(cause.since, now)] as const]),
    ...cause.evidence.map(({ source, fact }) => ["Evidence", `${source}: ${fact}`] as const),
    ...(cause.blocks.length === 0 ? [] : [["Also blocks", cause.blocks.join(", ")] as const]),
    ["Next", cause.next],
    ...(cause.remedy ? [["To do", cause.remedy] as const] : []),
    ...problemsIn(facts).map((problem) => ["Not read", problem] as const),
  ];
  return [
    wrap(printable(head), columns, "  "),
    ...entries.map(([label, text]) => wrap(`  ${`${label}:`.padEnd(LABEL)}${printable(text)}`, columns, INDENT)),
  ];
}

const LABEL = 13;
const INDENT = " ".repeat(LABEL + 2);

function sinceWords(since: Date, now: Date): string {
  const age = durationInWords((now.getTime() - since.getTime()) / 1000);
  return `${age} (${since.toISOString().replace(/\.\d+Z$/, "Z")})`;
}
