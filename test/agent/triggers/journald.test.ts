import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { until } from "../../../lab/poll.ts";
import { followJournald } from "../../../src/agent/triggers/journald.ts";
import { tempDir } from "../../node/temp-dir.ts";
import { type Hints, hints } from "./hints.ts";

const HANG_GUARD_MS = 30_000;
const TROUBLE = 'level=error msg="StopPodSandbox for \\"abc\\" failed" error="failed to destroy network for sandbox"';
const UNITS = ["k3s", "k3s-agent"];

interface Followed {
  readonly watch: ReturnType<typeof followJournald>;
  readonly seen: Hints;
  readonly warnings: readonly string[];
  readonly root: string;
  /** $STARTS.<name> of the script. */
  file(name: string): string;
  /** The arguments of the fake, one line per start. */
  starts(): readonly string[];
  started(times: number): Promise<void>;
}

/** A node with a journal, and a journalctl that runs this shell script with its file of starts as $STARTS. */
function following(script: string, places: readonly string[] = ["run/systemd/journal", "var/log/journal"]): Followed {
  const dir = tempDir();
  const root = join(dir, "root");
  for (const place of places) mkdirSync(join(root, place), { recursive: true });
  const bin = join(dir, "bin");
  mkdirSync(bin);
  const file = join(dir, "starts");
  if (script !== "") {
    writeFileSync(
      join(bin, "journalctl"),
      `#!/bin/sh\nPATH=/usr/bin:/bin\nSTARTS=${file}\ndate +%s%N >>$STARTS.times\necho "$@" >>$STARTS\n${script}\n`,
    );
    chmodSync(join(bin, "journalctl"), 0o755);
  }
  vi.stubEnv("PATH", bin);
  const seen = hints();
  const warnings: string[] = [];
  const watch = followJournald({
    hostRoot: root,
    onHint: seen.onHint,
    warn: (...parts) => warnings.push(parts.join(": ")),
    onLost: (error) => warnings.push(String(error)),
  });
  onTestFinished(() => {
    watch.close();
    vi.unstubAllEnvs();
  });
  // The shell creates the file before it writes the line.
  const starts = (): readonly string[] =>
    existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  const started = async (times: number): Promise<void> => {
    await until(`journalctl is started ${times} times`, HANG_GUARD_MS, () => starts().length >= times || undefined);
  };
  return { watch, seen, warnings, root, file: (name) => `${file}.${name}`, starts, started };
}

/** Follows without output, for at most a minute, as the process that gets the signal. */
const SILENT = "exec sleep 60";

describe("following journald", () => {
  test("hints at lines that may concern a sandbox in trouble, and at no others", async () => {
    const wait = "sleep 0.3; touch $STARTS.written; until [ -e $STARTS.go ]; do sleep 0.05; done";
    const followed = following(`echo 'failed to sync the clock'; ${wait}; echo '${TROUBLE}'; ${SILENT}`);
    followed.watch.refresh(UNITS);
    await until("it has chattered", HANG_GUARD_MS, () => existsSync(followed.file("written")) || undefined);
    expect(followed.seen.all).toEqual([]);

    writeFileSync(followed.file("go"), "");

    expect(await followed.seen.next("lines in the journal")).toEqual({ from: "lines in the journal", urgency: "soon" });
    expect(followed.warnings).toEqual([]);
  });

  test("requests new lines of these units in the node's own journal", async () => {
    const followed = following(SILENT);
    followed.watch.refresh(UNITS);
    await followed.started(1);

    const [args = ""] = followed.starts();
    expect(args).toContain(`--directory=${join(followed.root, "var/log/journal")}`);
    expect(args).toMatch(/--follow --lines=0 .*--unit=k3s --unit=k3s-agent$/);
  });

  test("finds a journal in memory, too", async () => {
    const followed = following(SILENT, ["run/systemd/journal", "run/log/journal"]);
    followed.watch.refresh(UNITS);
    await followed.started(1);

    expect(followed.starts()[0]).toContain(`--directory=${join(followed.root, "run/log/journal")}`);
  });

  test("keeps following the same units, and switches to others", async () => {
    const followed = following(SILENT);
    followed.watch.refresh(UNITS);
    await followed.started(1);
    followed.watch.refresh(UNITS);
    followed.watch.refresh(["containerd"]);
    await followed.started(2);

    expect(followed.starts()).toEqual([
      expect.stringMatching(/k3s-agent$/),
      expect.stringMatching(/--unit=containerd$/),
    ]);
    expect(followed.warnings).toEqual([]);
  });

  test("restarts journalctl with a growing back-off, and reports its last output once", async () => {
    const followed = following("echo 'no permission' >&2; exit 1");
    followed.watch.refresh(UNITS);
    await followed.started(3);

    const [first = 0, second = 0, third = 0] = readFileSync(followed.file("times"), "utf8").split("\n").map(Number);
    expect(third - second).toBeGreaterThan(1.3 * (second - first));
    expect(followed.warnings).toEqual([
      "journald unavailable; relying on periodic scans: journalctl ended with 1: no permission",
    ]);
  });

  test("turns a flood into a few hints, and does not read it to its end", async () => {
    const followed = following(`exec timeout 60 yes '${TROUBLE}'`);
    followed.watch.refresh(UNITS);

    await followed.seen.next("lines in the journal");
    await until("it is left alone", HANG_GUARD_MS, () => followed.warnings[0]);

    expect(followed.warnings).toEqual([expect.stringContaining("it is flooded")]);
    expect(followed.seen.all.length).toBeLessThan(20);
  });

  test("ends with the watch", async () => {
    const followed = following(`echo $$ >$STARTS.pid; ${SILENT}`);
    followed.watch.refresh(UNITS);
    const pid = await until("it runs", HANG_GUARD_MS, () =>
      existsSync(followed.file("pid")) ? Number(readFileSync(followed.file("pid"))) || undefined : undefined,
    );

    followed.watch.close();

    await until("it has ended", HANG_GUARD_MS, () => (existsSync(`/proc/${pid}`) ? undefined : true));
    expect(followed.warnings).toEqual([]);
  });

  test.each([
    ["no journal", "exit 0", [], "there is none on this node"],
    ["no files of it", "exit 0", ["run/systemd/journal"], "are not to be seen below"],
    ["no journalctl", "", ["run/systemd/journal", "var/log/journal"], "could not be run"],
  ])("continues without it when there is %s, and reports it", async (_what, script, places, words) => {
    const followed = following(script, places);
    followed.watch.refresh(UNITS);
    await until("it is logged", HANG_GUARD_MS, () => followed.warnings[0]);

    expect([followed.warnings, followed.starts()]).toEqual([[expect.stringContaining(words)], []]);
  });
});
