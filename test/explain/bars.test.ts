import { describe, expect, test } from "vitest";
import { type Group, grouper } from "../../src/diagnose/explain/group.ts";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { newestSets, readSet, type SetLine, setNames } from "./sets.ts";

/** No failure in themselves: an answer with one of these is no alarm. */
const HARMLESS: ReadonlySet<string> = new Set(["sandbox-changed-alone", "second-idempotent-del"]);

function groupsOf({ line }: SetLine): readonly Group[] {
  const counted = grouper();
  for (const answer of answersIn(line)) counted.add(answer);
  return counted.groups();
}

function classesOf(one: SetLine): readonly string[] {
  return groupsOf(one).flatMap((group) => (group.kind === "class" ? [group.class, ...group.alternatives] : []));
}

function isAlarm(group: Group): boolean {
  return group.kind === "failure" || (group.kind === "class" && !HARMLESS.has(group.class));
}

/** A failure although nothing failed, or first of all a class that is not accepted. */
function isUntrue(one: SetLine): boolean {
  if (one.none) return groupsOf(one).some(isAlarm);
  const [first] = classesOf(one);
  return first !== undefined && !one.accept.includes(first);
}

function share(lines: readonly SetLine[], isRight: (line: SetLine) => boolean): number {
  return lines.filter(isRight).length / lines.length;
}

// Totals alone: the second halves are for measuring, and stay unread.
describe("of the lines that people paste", () => {
  const lines = setNames.flatMap((name) => readSet(name));
  const ofClass = lines.filter(({ accept, mechanism }) => accept.length > 0 && mechanism === undefined);

  test("92 of 100 have the right class, and 88 have it first", () => {
    expect(share(ofClass, (one) => classesOf(one).some((id) => one.accept.includes(id)))).toBeGreaterThanOrEqual(0.92);
    expect(share(ofClass, (one) => one.accept.includes(classesOf(one)[0] ?? ""))).toBeGreaterThanOrEqual(0.88);
  });

  test("every failing operation whose cause is unknown has an answer", () => {
    const silent = lines.filter((one) => one.operation !== undefined && groupsOf(one).length === 0);

    expect(silent).toHaveLength(0);
  });

  test("one in a hundred at most is taken for a failure although it is none", () => {
    const harmless = lines.filter(({ none }) => none);

    expect(share(harmless, (one) => groupsOf(one).some(isAlarm))).toBeLessThanOrEqual(0.01);
  });

  test("of the newest lines one in fifty at most gets a class that is not true of it", () => {
    const newest = newestSets.flatMap((name) => readSet(name));

    expect(share(newest, isUntrue)).toBeLessThanOrEqual(0.02);
  });
});
