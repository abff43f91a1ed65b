import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { type TextfileOptions, textfileWriter } from "../../../src/agent/metrics/agent-metrics.ts";
import { openStore, type Store } from "../../../src/agent/state/store.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { freshState, sightingOf } from "./agent-state.ts";
import { namesIn, seriesIn } from "./exposition.ts";

const HANG_MS = 30_000;
const ONE_GHOST = 'unghost_findings{class="pod-gone"} 1\n';

let dir: ReturnType<typeof tempDir>;
let writers: ReturnType<typeof textfileWriter>[];

beforeEach(() => {
  dir = tempDir();
  writers = [];
});
afterEach(async () => {
  for (const writer of writers) await writer.close();
  dir.remove();
});

interface Opened {
  readonly store: Store;
  readonly writer: ReturnType<typeof textfileWriter>;
  readonly path: string;
  readonly problems: readonly string[];
}

function opened(options: Partial<TextfileOptions> = {}): Opened {
  const store = openStore(freshState());
  const path = dir.join("unghost.prom");
  const problems: string[] = [];
  const writer = textfileWriter({
    store,
    path,
    everyMs: 1,
    warn: (...problem) => problems.push(problem.join(": ")),
    ...options,
  });
  writers.push(writer);
  return { store, writer, path, problems };
}

function content(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function written(path: string, what: string): Promise<string> {
  return until(what, HANG_MS, () => (content(path).includes(what) ? content(path) : undefined));
}

function addGhost(store: Store): void {
  store.update((state) => ({ ...state, sightings: [sightingOf("pod-gone")] }));
}

describe("textfileWriter", () => {
  test("writes at start, and after a change", async () => {
    const { store, path } = opened();
    const start = await written(path, "unghost_build_info");

    addGhost(store);

    await written(path, ONE_GHOST);
    expect(seriesIn(start).get('unghost_findings{class="pod-gone"}')).toBe(0);
  });

  test("writes no metric under a name of node_exporter itself", async () => {
    const { path } = opened();

    const names = namesIn(await written(path, "unghost_build_info"));

    expect([...names].filter((name) => !name.startsWith("unghost_"))).toEqual([]);
  });

  test("makes the file world-readable, and leaves no temporary file", async () => {
    const { path, writer } = opened();
    await written(path, "unghost_build_info");
    await writer.close();

    expect(statSync(path).mode & 0o777).toBe(0o644);
    expect(readdirSync(dir.path)).toEqual(["unghost.prom"]);
  });

  test("replaces the file instead of rewriting it, so that open readers can finish", async () => {
    const { store, path } = opened();
    await written(path, "unghost_build_info");
    const before = statSync(path).ino;

    addGhost(store);
    await written(path, ONE_GHOST);

    expect(statSync(path).ino).not.toBe(before);
  });

  test("does not follow a link at the path of its temporary file", async () => {
    writeFileSync(dir.join("victim"), "mine");
    symlinkSync(dir.join("victim"), dir.join("unghost.prom.draft"));
    const { path } = opened();

    await written(path, "unghost_build_info");

    expect(content(dir.join("victim"))).toBe("mine");
  });

  test("combines many changes into one write, and writes the rest on close", async () => {
    const { store, path, writer } = opened({ everyMs: 600_000 });
    await written(path, "unghost_build_info");
    const first = statSync(path).ino;

    addGhost(store);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const meanwhile = statSync(path).ino;
    await writer.close();

    expect(meanwhile).toBe(first);
    expect(content(path)).toContain(ONE_GHOST);
  });

  test("reports a failure once, and writes again when it can", async () => {
    const path = dir.join("collector/unghost.prom");
    const { store, problems } = opened({ path });
    await until("the complaint", HANG_MS, () => problems[0]);
    for (let change = 0; change < 5; change += 1) {
      store.update((state) => ({ ...state }));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const reported = [...problems];

    mkdirSync(dir.join("collector"));
    addGhost(store);
    await written(path, ONE_GHOST);
    rmSync(dir.join("collector"), { recursive: true });
    store.update((state) => ({ ...state }));

    expect(reported).toEqual([
      `writing the metrics file failed; retrying: ${path}: there is no such file or directory (ENOENT)`,
    ]);
    await until("the next failure", HANG_MS, () => problems[1]);
  });

  test.each(["unghost.txt", "prom", "unghost.prom.tmp"])(
    "refuses %s, a name that node_exporter would not read",
    (name) => {
      expect(() => opened({ path: dir.join(name) })).toThrow(/reads files that end in \.prom only/);
    },
  );
});
