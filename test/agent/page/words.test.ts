import { expect, test } from "vitest";
import { ago, listed, secondsInWords } from "../../../src/agent/page/words.ts";

test.each([
  [-5000, "just now"],
  [400, "just now"],
  [4000, "4s ago"],
  [95_000, "1m35s ago"],
])("an age of %d ms is shown as %s", (age, words) => {
  expect(ago(0, age)).toBe(words);
});

test("a list contains only non-empty parts", () => {
  expect(
    listed([
      [1, "healed"],
      [0, "failed"],
      [2, "waiting"],
    ]),
  ).toBe("1 healed, 2 waiting");
});

test.each([
  [0.0123, "12 ms"],
  [0.999, "999 ms"],
  [12.34, "12.3 s"],
])("%d seconds are shown as %s", (seconds, words) => {
  expect(secondsInWords(seconds)).toBe(words);
});
