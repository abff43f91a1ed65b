import fc from "fast-check";
import { expect, test } from "vitest";
import { parseDurationMs } from "../../src/cli/settings/kinds.ts";

test.each([
  ["500ms", 500],
  ["90s", 90_000],
  ["10m", 600_000],
  ["1h30m", 5_400_000],
  ["1m30.5s", 90_500],
  ["0s", 0],
  ["0", 0],
  ["7", 7000],
  ["1.5", 1500],
  ["30d", 2_592_000_000],
  ["1d12h", 129_600_000],
])("%s is %i ms", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
});

test.each(["", " ", "soon", "-5s", "5 s", "5w", "5S", "s", "1h 30m", "1h30", "1e3", "Infinity", "NaN", "5s\n", "٣s"])(
  "%j is not a duration",
  (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  },
);

test("a duration in parts is the sum of its parts", () => {
  const part = fc.nat({ max: 10_000 });
  fc.assert(
    fc.property(part, part, part, part, (h, m, s, ms) => {
      expect(parseDurationMs(`${h}h${m}m${s}s${ms}ms`)).toBe(((h * 60 + m) * 60 + s) * 1000 + ms);
    }),
  );
});

test("no text throws or gives an invalid duration", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const ms = parseDurationMs(text);
      expect(ms === undefined || (Number.isFinite(ms) && ms >= 0)).toBe(true);
    }),
  );
});
