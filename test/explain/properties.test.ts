import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classById } from "../../src/classes/index.ts";
import { answersIn, explainText } from "../../src/diagnose/explain/lines.ts";
import { recognise } from "../../src/diagnose/explain/recognise.ts";
import { subjectOf } from "../../src/logs/subject.ts";
import { normalise } from "../../src/logs/text.ts";
import { positives } from "./corpus.ts";

const anyLine = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  fc
    .array(fc.constantFrom(...positives.flatMap(({ line }) => line.split(/(?<=[ :"\\])/))), { maxLength: 60 })
    .map((parts) => parts.join("")),
);

describe("explain on arbitrary input", () => {
  test("never throws, and returns only classes of the catalogue", () => {
    fc.assert(
      fc.property(anyLine, (line) => {
        for (const match of recognise(line)) {
          expect(classById(match.class)).toBeDefined();
          expect(match.line).toBe(line);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("never throws for several lines", () => {
    fc.assert(
      fc.property(fc.array(anyLine, { maxLength: 30 }), (lines) => {
        explainText(lines.join("\n"));
      }),
      { numRuns: 300 },
    );
  });

  test("normalisation is idempotent", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9 :=_.,/-]{0,200}$/), (line) => {
        expect(normalise(normalise(line))).toBe(normalise(line));
      }),
    );
  });

  test("finds a signature anywhere in a long line", () => {
    const cause =
      'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';
    fc.assert(
      fc.property(fc.nat(200_000), fc.nat(200_000), (before, after) => {
        const line = `${"a b ".repeat(before / 4)}${cause}${" c d".repeat(after / 4)}`;
        expect(recognise(line)[0]?.class).toBe("libcni-result-cache-corrupt");
      }),
      { numRuns: 20 },
    );
  });
});

/** Fragments that start many matches of a signature, and complete none. */
const HOSTILE: readonly string[] = [
  "\\",
  '\\"',
  '"',
  " ",
  "\u001b[0;",
  "&quot;",
  "failed to reserve sandbox name ",
  "runpodsandbox ",
  "killpodsandbox ",
  "del finished cni request ",
  "name a_b_c_",
  "failed to load container ",
  "running [/sbin/iptables ",
  "removing /sandboxes/ ",
  "kata sandbox ",
  "dial unix /a: ",
  "sandbox 0123456789abcdef",
  "k8s_a_b_",
  "failed 1",
  "error 7f",
  "(add)",
  "rpc error: code = Unknown desc = ",
  'plugin type="a" failed (add): ',
  "a_b(",
  "[a/b",
  "-rw------- 1 a a 0 ",
  "task containerd:1 ",
  "status from runtime service failed ",
  "error removing pod a",
  "x",
];

describe("time is linear in the length of", () => {
  test.each(HOSTILE)(
    "a megabyte of %j",
    (fragment) => {
      const part = fragment.repeat(Math.ceil(65_536 / fragment.length));
      const whole = part.repeat(16);
      cheapest(() => recognise(part), 2);

      const small = cheapest(() => recognise(part), 5);
      const large = cheapest(() => recognise(whole), 2);

      // Sixteen times the text: linear means sixteen times the time, quadratic 256. The factor allows for a noisy
      // machine.
      expect(large).toBeLessThan(small * 80 + 100);
    },
    60_000,
  );

  test.each(HOSTILE)(
    "searches the subject in linear time in %j",
    (fragment) => {
      const part = normalise(fragment.repeat(Math.ceil(1_024 / fragment.length)));
      cheapest(() => subjectOf(part), 3);

      const small = cheapest(() => subjectOf(part), 5);
      const large = cheapest(() => subjectOf(part.repeat(16)), 3);

      expect(large).toBeLessThan(small * 80 + 100);
    },
    60_000,
  );

  test.each(HOSTILE)(
    "answers in linear time, with topics and operations: %j",
    (fragment) => {
      const part = fragment.repeat(Math.ceil(4_000 / fragment.length));
      cheapest(() => answersIn(part), 2);

      const small = cheapest(() => answersIn(`${part}a`), 3);
      const large = cheapest(() => answersIn(part.repeat(16)), 2);

      expect(large).toBeLessThan(small * 80 + 100);
    },
    60_000,
  );

  test("a hundred thousand ordinary lines", () => {
    const text = 'I1115 03:22:07.1 811 kubelet.go:1] "SyncLoop" pod="a/b"\n'.repeat(100_000);

    expect(explainText(text)).toEqual([]);
  }, 60_000);

  test("a megabyte without a line break that starts like a record", () => {
    expect(explainText(`E1115 03:22:07.1 ${"x".repeat(1_048_576)}`)).toEqual([]);
  }, 60_000);
});

/** Milliseconds of this thread's own CPU time, so that other processes do not count. */
function cheapest(run: () => unknown, times: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < times; round++) {
    const start = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(start);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}
