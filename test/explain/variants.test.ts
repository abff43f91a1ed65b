import { describe, expect, test } from "vitest";
import { explainText } from "../../src/diagnose/explain/lines.ts";
import { recognise } from "../../src/diagnose/explain/recognise.ts";
import { negatives, positives } from "./corpus.ts";
import { brokenAt, brokenAtWords, ENVELOPES } from "./forms.ts";

/** A listing or a row of a table is not quoted in an envelope. */
const proseLike = positives.filter(({ line }) => !/^-[rwx-]{9}|^\d+ -[rwx-]{9}/.test(line));

describe.each(Object.entries(ENVELOPES))("%s", (_, variant) => {
  test("every line of the corpus is still recognised", () => {
    for (const { line, expect: expected } of proseLike) {
      expect(recognise(variant(line))[0]?.class, variant(line)).toBe(expected);
    }
  });

  test("ordinary errors stay unmatched", () => {
    for (const { line } of negatives) expect(recognise(variant(line)), variant(line)).toEqual([]);
  });
});

describe("several physical lines", () => {
  const frame = (line: string) => `E1115 03:22:07.1 811 x.go:1] ${line}`;

  test.each([60, 80, 100, 132])("a record wrapped by a terminal at %i columns is one record", (width) => {
    for (const { line, expect: expected } of proseLike) {
      const records = explainText(brokenAt(frame(line), width).join("\n"));

      expect(
        records.map((record) => record[0]?.class),
        line,
      ).toEqual([expected]);
    }
  });

  test("a record wrapped at words, without its line breaks, is one record", () => {
    for (const { line, expect: expected } of proseLike) {
      const records = explainText(brokenAtWords(frame(line), 80).join("\n"));

      expect(
        records.map((record) => record[0]?.class),
        line,
      ).toEqual([expected]);
    }
  });

  test("consecutive records stay separate", () => {
    const text = proseLike.map(({ line }) => frame(line)).join("\n");

    expect(explainText(text).map((record) => record[0]?.class)).toEqual(proseLike.map((one) => one.expect));
  });

  test("a manually wrapped message is one record, its cause first", () => {
    const text = [
      'Warning  FailedKillPod  (x74 over 19m)  kubelet  error killing pod: failed to "KillPodSandbox"',
      'for "3f8e6c1a" with KillPodSandboxError:',
      '"rpc error: code = Unknown desc = failed to destroy network for sandbox: plugin type=\\"mesh-cni\\"',
      'name=\\"mesh-cni\\" failed (delete): failed to find plugin \\"mesh-cni\\" in path [/opt/cni/bin]"',
    ].join("\n");

    expect(explainText(text).map((record) => record[0]?.class)).toEqual(["chained-plugin-binary-missing"]);
  });

  test("consecutive bare messages stay separate", () => {
    const message =
      'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';

    expect(explainText([message, message, message].join("\n"))).toHaveLength(3);
  });
});

test("a line truncated by the length limit of events is recognised when its cause is before the cut", () => {
  const cause =
    'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';
  for (const front of [100, 500, 900]) {
    const line = `${"x".repeat(front)} failed to destroy network for sandbox "abc": ${cause} ${"y".repeat(2000)}`;
    for (const tail of ["", "…", "...", ">"]) {
      expect(recognise(line.slice(0, 1024) + tail)[0]?.class).toBe("libcni-result-cache-corrupt");
    }
  }
});
