import { expect, test } from "vitest";
import { failureCode, failureSentence } from "../../src/cli/app.ts";
import { SettingsError } from "../../src/cli/settings/kinds.ts";

test("an invalid setting is a usage error, with its own message", () => {
  const error = new SettingsError("--timeout: no");

  expect(failureSentence(error, false)).toBe("unghost: --timeout: no");
  expect(failureSentence(error, true)).toBe("unghost: --timeout: no");
  expect(failureCode(error)).toBe(64);
});

test("any other error exits 2; the stack is printed with --verbose", () => {
  const error = new TypeError("of all things");

  expect(failureSentence(error, false)).toBe(
    "unghost: unexpected: of all things. Run it again with -v and report what it prints.",
  );
  expect(failureSentence(error, true)).toMatch(/of all things\n +at /);
  expect(failureCode(error)).toBe(2);
});

test("thrown values may be no errors and contain control characters", () => {
  expect(failureSentence("\u001b[31mred", false)).toContain("\\x1b[31mred");
  expect(failureCode(undefined)).toBe(2);
});
