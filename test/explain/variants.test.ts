import { describe, expect, test } from "vitest";
import { explainText } from "../../src/diagnose/explain/lines.ts";
import { recognise } from "../../src/diagnose/explain/recognise.ts";
import { negatives, positives } from "./corpus.ts";

type Variant = (line: string) => string;

const escaped = (line: string) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"');

/** The envelopes of the same error. */
const ENVELOPES: Readonly<Record<string, Variant>> = {
  "escaped once": escaped,
  "escaped twice": (line) => escaped(escaped(line)),
  "escaped three times": (line) => escaped(escaped(escaped(line))),
  klog: (line) =>
    `E1115 03:22:07.101010     811 pod_workers.go:1298] "Error syncing pod, skipping" err="${escaped(line)}"`,
  logfmt: (line) => `time="2026-11-15T03:22:07.1Z" level=error msg="failed" error="${escaped(line)}"`,
  json: (line) => JSON.stringify({ level: "error", msg: line, time: "2026-11-15T03:22:07Z" }),
  "json in journald": (line) => `Nov 15 03:22:07 node1 k3s[811]: ${JSON.stringify({ ts: 1, error: line })}`,
  talos: (line) => `10.0.0.7: ${JSON.stringify({ error: line, level: "error", msg: "x" })}`,
  journald: (line) => `Nov 15 03:22:07 node1 kubelet[811]: ${line}`,
  "kubectl describe": (line) => `  Warning  Failed  2m (x3 over 7m)  kubelet  ${line}`,
  "kubectl get events": (line) => `shop   2m   Warning   FailedKillPod   pod/web-0   ${line}`,
  crictl: (line) => `FATA[0002] ${line}`,
  "quoted in a reply": (line) => `> ${line}`,
  coloured: (line) => `\u001b[31mERROR\u001b[0m ${line}`,
  "quotes eaten by a shell": (line) => line.replaceAll('"', ""),
  "quotes made typographic": (line) => line.replaceAll(/"([^"]*)"/g, "“$1”"),
  html: (line) => line.replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
  "windows line end": (line) => `${line}\r`,
};

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

function brokenAt(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (let start = 0; start < text.length; start += width) lines.push(text.slice(start, start + width));
  return lines;
}

function brokenAtWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
