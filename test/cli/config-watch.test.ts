import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type WatchTiming, watchConfigFile } from "../../src/cli/settings/file.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOUR_MS = 3_600_000;
/** Only kernel notifications. */
const NOTICES_ONLY: WatchTiming = { quietMs: 20, everyMs: HOUR_MS };
/** Only the periodic check runs. */
const CHECKS_ONLY: WatchTiming = { quietMs: HOUR_MS, everyMs: 20 };

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function watched(path: string, timing: WatchTiming) {
  const onChange = vi.fn<() => void>();
  onTestFinished(watchConfigFile(path, onChange, timing));
  return {
    onChange,
    noticed: (times: number) => vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(times), 30_000),
  };
}

describe.each([
  ["by notification", NOTICES_ONLY],
  ["by the periodic check", CHECKS_ONLY],
])("config watch %s", (_, timing) => {
  test("notices a file that is written, replaced, removed and created again", async () => {
    const path = dir.join("config.yaml");
    writeFileSync(path, "one");
    const { noticed } = watched(path, timing);

    writeFileSync(path, "three");
    await noticed(1);
    writeFileSync(dir.join("new"), "other");
    renameSync(dir.join("new"), path);
    await noticed(2);
    rmSync(path);
    await noticed(3);
    writeFileSync(path, "again");
    await noticed(4);
  });

  test("notices a changed link, as of a ConfigMap update", async () => {
    mkdirSync(dir.join("..one"));
    mkdirSync(dir.join("..two"));
    writeFileSync(dir.join("..one/config.yaml"), "same length");
    writeFileSync(dir.join("..two/config.yaml"), "same lenght");
    symlinkSync("..one", dir.join("..data"));
    symlinkSync("..data/config.yaml", dir.join("config.yaml"));
    const { noticed } = watched(dir.join("config.yaml"), timing);

    symlinkSync("..two", dir.join("..data_tmp"));
    renameSync(dir.join("..data_tmp"), dir.join("..data"));

    await noticed(1);
  });
});

test("reports a file that is written in many steps once, when it is complete", async () => {
  const path = dir.join("config.yaml");
  writeFileSync(path, "");
  const { onChange, noticed } = watched(path, { quietMs: 400, everyMs: HOUR_MS });

  for (let step = 0; step < 10; step++) {
    writeFileSync(path, "x".repeat(step), { flag: "a" });
    await sleep(1);
  }

  await noticed(1);
  expect(onChange).toHaveBeenCalledTimes(1);
});

test("notices a directory that is created later", async () => {
  const path = dir.join("etc/config.yaml");
  const { noticed } = watched(path, CHECKS_ONLY);

  mkdirSync(dir.join("etc"));
  writeFileSync(path, "here");

  await noticed(1);
});

test("does not report other files of the directory", async () => {
  const path = dir.join("config.yaml");
  writeFileSync(path, "one");
  const { onChange, noticed } = watched(path, NOTICES_ONLY);
  // It has seen everything before the change that it reports.
  const other = watched(dir.join("other"), NOTICES_ONLY);

  writeFileSync(dir.join("other"), "two");
  await other.noticed(1);
  expect(onChange).not.toHaveBeenCalled();
  writeFileSync(path, "three");
  await noticed(1);
});

test.each([
  ["notices", NOTICES_ONLY],
  ["checks", CHECKS_ONLY],
])("reports neither pending nor later %s once it is stopped", async (_, timing) => {
  const path = dir.join("config.yaml");
  writeFileSync(path, "one");
  const onChange = vi.fn<() => void>();
  const stop = watchConfigFile(path, onChange, timing);
  // Another watcher with the same timing shows when the stopped one would have reported.
  const { noticed } = watched(path, timing);

  stop();
  writeFileSync(path, "three");
  await noticed(1);
  writeFileSync(path, "five!");
  await noticed(2);

  expect(onChange).not.toHaveBeenCalled();
});
