import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { printable } from "../../src/host/text.ts";
import { inLines, paint, sentence, wrap } from "../../src/report/words.ts";

describe("wrap", () => {
  test.each([
    ["short enough", 40, "", "short enough"],
    ["one two three four five six", 24, "  ", "one two three four five\n  six"],
    ["  kept indentation of the first line", 24, "    ", "  kept indentation of\n    the first line"],
    [`a ${"x".repeat(30)} b`, 24, "  ", `a\n  ${"x".repeat(30)}\n  b`],
    ["", 40, "  ", ""],
    [`pod  ${"x".repeat(30)}`, 24, "    ", `pod\n    ${"x".repeat(30)}`],
    [`${"x".repeat(24)}  pod`, 24, "    ", `${"x".repeat(24)}\n    pod`],
  ])("%j in %i columns", (text, columns, indent, expected) => {
    expect(wrap(text, columns, indent)).toBe(expected);
  });

  const words = fc.array(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1, maxLength: 40 });

  test("loses no word, and no line is too long", () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 24, max: 120 }), (list, columns) => {
        const lines = wrap(list.join(" "), columns, "    ").split("\n");
        expect(lines.join(" ").split(/ +/).filter(Boolean)).toEqual(list);
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
      }),
    );
  });

  test("colours take no width", () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 24, max: 80 }), (list, columns) => {
        const ink = paint(true);
        const painted = wrap(list.map((word) => ink.red(word)).join(" "), columns, "  ");
        expect(stripVTControlCharacters(painted)).toBe(wrap(list.join(" "), columns, "  "));
      }),
    );
  });
});

test("a line that is too long breaks before its command", () => {
  const parts = ["1 kept on purpose.", "Next: unghost heal", "Details, 12 upgrade notes: unghost scan -v"];

  expect(inLines(parts, 80)).toEqual(["1 kept on purpose.   Next: unghost heal", parts[2]]);
  expect(inLines(parts, 40)).toEqual([
    "1 kept on purpose.   Next: unghost heal",
    "Details, 12 upgrade notes:\n  unghost scan -v",
  ]);
});

test("printable escapes control and invisible characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }),
  );
  expect(printable("plain text, ümläute and 漢字")).toBe("plain text, ümläute and 漢字");
});

test.each([
  ["run it as root", "Run it as root."],
  ["Already one.", "Already one."],
  ["/var/lib may not be read", "/var/lib may not be read."],
  ["why?", "Why?"],
  ["unghost heal --only x deletes it", "unghost heal --only x deletes it."],
])("%j as a sentence is %j", (text, expected) => {
  expect(sentence(text)).toBe(expected);
});
