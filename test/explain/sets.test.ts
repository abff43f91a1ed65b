import { describe, expect, test } from "vitest";
import { classById } from "../../src/classes/index.ts";
import { readSet, type SetLine, setNames } from "./sets.ts";

const known: ReadonlySet<string> = new Set([
  "line",
  "accept",
  "none",
  "mechanism",
  "operation",
  "topic",
  "form",
  "note",
]);
const operations: ReadonlySet<string> = new Set([
  "create-sandbox",
  "stop-sandbox",
  "remove-sandbox",
  "cni-add",
  "cni-del",
  "recover",
  "create-container",
  "start-container",
  "stop-container",
  "attach",
  "detach",
  "mount",
  "unmount",
  "list",
  "runtime-status",
]);

function expectations({ accept, none, mechanism, operation, topic }: SetLine): readonly string[] {
  if (none) return ["none"];
  if (mechanism !== undefined) return ["mechanism"];
  if (operation !== undefined) return ["operation"];
  return [...(topic === undefined ? [] : ["topic"]), ...(accept.length > 0 ? ["class"] : [])];
}

describe.each(setNames)("%s of the set of lines", (name) => {
  const lines = readSet(name);

  test("names only classes and operations that exist, and has no other fields", () => {
    for (const one of lines) {
      expect(
        one.accept.filter((id) => classById(id) === undefined),
        one.line,
      ).toEqual([]);
      expect(
        Object.keys(one).filter((key) => !known.has(key)),
        one.line,
      ).toEqual([]);
      if (one.operation !== undefined) expect(operations, one.line).toContain(one.operation);
    }
  });

  test("expects one kind of answer of each line, and says what made the line", () => {
    for (const one of lines) {
      expect(expectations(one), one.line).toHaveLength(1);
      if (one.none) expect(Object.keys(one).sort(), one.line).toEqual(["accept", "form", "line", "none", "note"]);
      for (const text of [one.line, one.form, one.note]) expect(text.trim(), one.line).not.toBe("");
    }
  });

  test("has every kind of answer", () => {
    expect([...new Set(lines.flatMap(expectations))]).toEqual(
      expect.arrayContaining(["class", "operation", "topic", "none"]),
    );
  });
});

describe("all halves together", () => {
  const lines = setNames.flatMap((name) => readSet(name));

  test("are large enough, of each kind", () => {
    const count = (kind: string) => lines.filter((one) => expectations(one).includes(kind)).length;

    expect(lines.length).toBeGreaterThanOrEqual(820);
    expect(count("operation")).toBeGreaterThanOrEqual(220);
    expect(count("topic")).toBeGreaterThanOrEqual(40);
    expect(count("none")).toBeGreaterThanOrEqual(180);
  });

  test("have no line twice", () => {
    const texts = lines.map((one) => one.line.replaceAll(/\s+/gu, " ").trim());

    expect(texts).toEqual([...new Set(texts)]);
  });
});
