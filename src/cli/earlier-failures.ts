import { join } from "node:path";
import { earlierFailures, type FailuresByFinding } from "../heal/journal/earlier-failures.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson, property } from "../host/text.ts";
import { withFailedHeals } from "../report/build.ts";
import type { NodeReport } from "../report/node-report.ts";
import { type NodeSettings, stateDirOf } from "./settings/read.ts";

type Place = Pick<NodeSettings, "hostRoot" | "stateDir">;

/** How often healing each finding has failed, and when the node's agent tries again. */
export async function failuresOf(settings: Place): Promise<FailuresByFinding> {
  const stateDir = stateDirOf(settings);
  const failures = await earlierFailures(stateDir, process.getuid?.() ?? 0);
  return failures.size === 0 ? failures : withOutlook(failures, stateDir, new Date().toISOString());
}

export async function withEarlierFailures(report: NodeReport, settings: Place): Promise<NodeReport> {
  return withFailedHeals(report, await failuresOf(settings));
}

/** From the file in which the agent keeps its attempts: what is in the past was written by an agent that is gone. */
export function withOutlook(failures: FailuresByFinding, stateDir: string, now: string): FailuresByFinding {
  const file = readRegularFile(join(stateDir, "attempts.json"));
  const subjects = file.kind === "content" ? property(parseJson(file.text), "subjects") : undefined;
  if (!Array.isArray(subjects)) return failures;
  const known = new Map(failures);
  for (const subject of subjects) {
    const finding = property(subject, "finding");
    const nextTryAt = property(subject, "nextTryAt");
    if (typeof finding !== "string" || typeof nextTryAt !== "string" || !(Date.parse(nextTryAt) > Date.parse(now)))
      continue;
    const failed = failures.get(finding);
    const givenUp = property(subject, "givenUp") === true ? true : undefined;
    if (failed !== undefined) known.set(finding, { ...failed, nextTryAt, givenUp });
  }
  return known;
}
