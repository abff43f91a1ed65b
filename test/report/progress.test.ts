import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { ActionResult } from "../../src/heal/run-action.ts";
import { progress } from "../../src/report/progress.ts";
import { actionOn } from "../agent/planned-action.ts";

const LOGS = "/var/lib/unghost/quarantine/0mwj4h7he-ofn0";

function shown(results: readonly Partial<ActionResult>[], screenColumns?: number): string {
  let written = "";
  const terms = screenColumns === undefined ? {} : { screenColumns };
  const lines = progress({ colour: true, write: (text) => void (written += text), ...terms });
  lines.begin(results.map(({ action = HEAL }) => action));
  for (const result of results) lines.report({ action: HEAL, outcome: "healed", seconds: 0.23, ...result });
  return stripVTControlCharacters(written);
}

const pod = { namespace: "shop", name: "web-10", uid: "u", attempt: 0 };
const made = actionOn("a");
const HEAL = {
  ...made,
  finding: {
    ...made.finding,
    class: "libcni-result-cache-corrupt",
    subject: { type: "sandbox", sandboxId: "a".repeat(64), name: "n", pod },
  },
  steps: [
    { kind: "quarantine-file", path: "/var/lib/cni/results/x" },
    { kind: "remove-sandbox", sandboxId: "a".repeat(64) },
  ],
} as unknown as ActionResult["action"];
const healOf = (name: string) =>
  ({
    ...HEAL,
    finding: { ...HEAL.finding, subject: { ...HEAL.finding.subject, pod: { ...pod, name } } },
  }) as typeof HEAL;
const LEAK = {
  ...made,
  finding: {
    ...made.finding,
    class: "hostlocal-ip-leak",
    subject: { type: "address", path: "/var/lib/cni/networks/cbr0/10.88.200.1" },
  },
  steps: [{ kind: "release-addresses", leases: ["10.88.200.1"] }],
} as unknown as ActionResult["action"];
const BOTH: readonly Partial<ActionResult>[] = [{ logsSavedTo: LOGS }, { action: LEAK, seconds: 12.4 }];

const WHOLE = `\
RESULT   WHAT         CLASS                        DONE                  TIME  LOGS
healed   shop/web-10  libcni-result-cache-corrupt  quarantined, removed  0.2s  ${LOGS}
healed   10.88.200.1  hostlocal-ip-leak            IPs released          12s   -
`;

describe("one line per healed finding", () => {
  test.each([
    ["in a pipe", undefined, WHOLE],
    ["on 200 columns", 200, WHOLE],
    ["where the directory does not fit", 110, WHOLE.replace(LOGS, "0mwj4h7he-ofn0")],
    [
      "on 80 columns",
      80,
      `\
RESULT   WHAT         CLASS           DONE                  TIME  LOGS
healed   shop/web-10  libcni-result…  quarantined, removed  0.2s  0mwj4h7he-ofn0
healed   10.88.200.1  hostlocal-ip-…  IPs released          12s   -
`,
    ],
    [
      "on 60 columns",
      60,
      `\
RESULT   WHAT         CLASS       DONE                  TIME
healed   shop/web-10  libcni-re…  quarantined, removed  0.2s
healed   10.88.200.1  hostlocal…  IPs released          12s
`,
    ],
    [
      "on 40 columns",
      40,
      `\
RESULT   WHAT         CLASS
healed   shop/web-10  libcni-result-cac…
healed   10.88.200.1  hostlocal-ip-leak
`,
    ],
  ])("%s", (_where, columns, lines) => {
    expect(shown(BOTH, columns)).toBe(lines);
  });

  test("leaves out a step that was not needed", () => {
    const undone = HEAL.steps.slice(0, 1);

    expect(shown([{ logsSavedTo: LOGS, undone }])).toMatch(/corrupt {2}removed +0\.2s {2}\/var\/lib\/unghost\//);
  });

  test("names what a refused action has done", () => {
    const undone = HEAL.steps.slice(1);

    expect(shown([{ outcome: "refused", undone }])).toMatch(
      /\nrefused +shop\/web-10 +\S+corrupt {2}quarantined +0\.2s/,
    );
  });

  test("an action that was not planned when the columns were fitted is not cut in a pipe", () => {
    let written = "";
    const lines = progress({ colour: false, write: (text) => void (written += text) });
    lines.begin([LEAK]);
    lines.report({ action: HEAL, outcome: "healed", seconds: 1 });

    expect(written).toContain("healed   shop/web-10  libcni-result-cache-corrupt  quarantined, removed  1.0s  -\n");
  });

  test("prints the reason below a failure, wrapped on a terminal and in one line in a pipe", () => {
    const reason = "StopPodSandbox: the plugin did not answer within 10s, and the sandbox is still listed";
    const failed = [{ outcome: "failed", reason, seconds: 10 }] as const;

    expect(shown(failed).split("\n").slice(1)).toEqual([
      "failed   shop/web-10  libcni-result-cache-corrupt  -                     10s   -",
      `  ${reason}`,
      "",
    ]);
    const onScreen = shown(failed, 60).split("\n");
    expect(onScreen.slice(2).join(" ").replaceAll(/\s+/g, " ").trim()).toBe(reason);
    for (const line of onScreen) expect(line.length).toBeLessThanOrEqual(60);
  });

  test("more than a screen of them are grouped by what became of them, and complete with -v", () => {
    const many = Array.from({ length: 30 }, (_, index) => healOf(`web-${29 - index}`));
    const run = (verbose: boolean, screenColumns?: number) => {
      let written = "";
      const lines = progress({ colour: false, verbose, screenColumns, write: (text) => void (written += text) });
      lines.begin([LEAK, ...many]);
      for (const [index, action] of many.entries()) {
        if (index < 28) lines.report({ action, outcome: "healed", seconds: index / 10 });
        else lines.report({ action, outcome: "failed", reason: "the plugin refused", seconds: 1 });
      }
      lines.end();
      return written.split("\n").slice(1, -1);
    };

    expect(run(false)).toEqual([
      "healed   shop/web-2, +27   libcni-result-cache-corrupt  quarantined, removed  2.7s  -",
      "failed   shop/web-0, +1    libcni-result-cache-corrupt  -                     1.0s  -",
      "  the plugin refused",
    ]);
    expect(run(true)).toHaveLength(32);
    expect(run(false, 80)[0]).toBe("healed   shop/web-2, +27  libcni-re…  quarantined, removed  2.7s  -");
  });

  test("a slow one is shown in the same columns", () => {
    let written = "";
    const lines = progress({ colour: false, write: (text) => void (written += text) });
    lines.begin([HEAL]);
    lines.waiting(HEAL);

    expect(written).toContain("waiting  shop/web-10  libcni-result-cache-corrupt  - ");
    expect(written).toContain("  no answer yet; the others go on, Ctrl-C leaves it\n");
  });

  test("only the first of many that wait is printed", () => {
    let written = "";
    const lines = progress({ colour: false, write: (text) => void (written += text) });
    lines.begin([HEAL, HEAL]);
    lines.waiting(HEAL);
    lines.waiting(HEAL);

    expect(written.match(/^waiting/gm)).toHaveLength(1);
  });
});

test("a reason that several findings share is printed once", () => {
  const failed = { outcome: "failed", seconds: 0.1 } as const;

  const lines = shown([
    { ...failed, reason: `sandbox "${"a".repeat(64)}": no socket` },
    { ...failed, reason: `sandbox "${"b".repeat(64)}": no socket` },
  ]).split("\n");

  expect([lines[2], lines[4]]).toEqual([`  sandbox "${"a".repeat(64)}": no socket`, "  as shop/web-10"]);
});
