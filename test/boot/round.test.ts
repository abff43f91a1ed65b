import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { healRound, type RoundOptions, withoutRuntime } from "../../src/boot/round.ts";
import { readHistory } from "../../src/heal/journal/reader.ts";
import { DEFAULT_CAP } from "../../src/plan/policy.ts";
import { sessionOf } from "../heal/heal-fixture.ts";
import { AT_ONCE, idOf } from "../support/snapshot-builder.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "unghost-round-"));
  mkdirSync(join(dir, "cni/results"), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const LONG_AGO = new Date(1e12);

function cacheFile(digit: string, content: string, modifiedAt = LONG_AGO): string {
  const path = join(dir, `cni/results/cbr0-${idOf(digit)}-eth0`);
  writeFileSync(path, content);
  utimesSync(path, modifiedAt, modifiedAt);
  return path;
}

function roundWith(dryRun: boolean): RoundOptions {
  return {
    observe: {
      node: "edge-1",
      runtimeEndpoint: undefined,
      cniCacheDir: join(dir, "cni"),
      multusDir: undefined,
      hostRoot: "/",
      kubeconfig: undefined,
      noKube: true,
      timeoutMs: 5000,
    },
    env: {},
    policy: { ...AT_ONCE, allDead: false, cap: DEFAULT_CAP },
    session: sessionOf(join(dir, "state")),
    concurrency: 4,
    sinks: { result: () => undefined, warning: () => undefined },
    remainingMs: () => 5000,
    deadline: new AbortController().signal,
    dryRun,
  };
}

const round = (options: RoundOptions) => healRound(withoutRuntime(options, 5000), options);

describe("a round without a runtime", () => {
  test("moves the broken cache files of before this boot to quarantine, and journals each", async () => {
    const broken = [cacheFile("a", ""), cacheFile("b", "{")];
    const [fine, fresh] = [cacheFile("c", '{"cniVersion":"1.0.0"}'), cacheFile("d", "", new Date())];

    const healed = await round(roundWith(false));

    expect(healed).toMatchObject({ kind: "healed", seen: { results: [{ outcome: "healed" }, { outcome: "healed" }] } });
    expect([...broken, fine, fresh].map((path) => existsSync(path))).toEqual([false, false, true, true]);
    const { records } = await readHistory(join(dir, "state/journal"));
    expect(records.map(({ action, outcome }) => [action.kind, outcome])).toEqual([
      ["quarantine-file", "healed"],
      ["quarantine-file", "healed"],
    ]);
  });

  test("only plans them with --dry-run", async () => {
    const path = cacheFile("a", "");

    const planned = await round(roundWith(true));

    expect(planned).toMatchObject({
      kind: "planned",
      plan: { actions: [{ finding: { id: `libcni-result-cache-corrupt/${path}` } }] },
    });
    expect([existsSync(path), existsSync(join(dir, "state"))]).toEqual([true, false]);
  });

  test("opens no session when nothing is broken", async () => {
    cacheFile("a", '{"cniVersion":"1.0.0"}');

    expect(await round(roundWith(false))).toMatchObject({ kind: "planned", plan: { actions: [] } });
    expect(existsSync(join(dir, "state"))).toBe(false);
  });
});
