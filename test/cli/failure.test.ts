import { expect, test } from "vitest";
import { failureCode, failureSentence } from "../../src/cli/app.ts";
import { SettingsError } from "../../src/cli/setting-values.ts";

test("a wrong setting is wrong usage, with its own message", () => {
  const error = new SettingsError("--timeout: no");

  expect(failureSentence(error, false)).toBe("unghost: --timeout: no");
  expect(failureSentence(error, true)).toBe("unghost: --timeout: no");
  expect(failureCode(error)).toBe(64);
});

test("anything else exits 2; the stack is printed with --verbose", () => {
  const error = new TypeError("of all things");

  expect(failureSentence(error, false)).toBe(
    "unghost: unexpected: of all things. Run it again with -v and report what it prints.",
  );
  expect(failureSentence(error, true)).toMatch(/of all things\n +at /);
  expect(failureCode(error)).toBe(2);
});

test("what is thrown need not be an error, nor printable", () => {
  expect(failureSentence("\u001b[31mred", false)).toContain("\\x1b[31mred");
  expect(failureCode(undefined)).toBe(2);
});
