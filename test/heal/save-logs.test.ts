import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../src/heal/history.ts";
import { type SaveLogsRequest, saveLogs } from "../../src/heal/save-logs.ts";
import { makeWorkshop, WHY, type Workshop } from "./workshop.ts";

const sandboxId = "f".repeat(64);
let shop: Workshop;
let pod: string;

beforeEach(async () => {
  shop = await makeWorkshop();
  pod = join(shop.caches, "default_web_1234");
  mkdirSync(join(pod, "app"), { recursive: true });
  mkdirSync(join(pod, "sidecar"));
});
afterEach(() => shop.remove());

function write(container: string, name: string, content: string): string {
  const path = join(pod, container, name);
  writeFileSync(path, content);
  return path;
}

async function save(logPaths: readonly string[], limits?: SaveLogsRequest["limits"]) {
  const outcome = await saveLogs(shop, { ...WHY, sandboxId, logPaths, ...(limits !== undefined && { limits }) });
  if (outcome.outcome !== "saved") throw new Error(outcome.refusal.message);
  return { ...outcome, logs: join(shop.stateDir.quarantine, outcome.id, "logs") };
}

describe("saveLogs", () => {
  test("keeps the logs of all containers with their rotated siblings, and leaves the originals", async () => {
    const app = write("app", "3.log", "current\n");
    write("app", "3.log.20240131-101530", "older\n");
    write("app", "3.log.20240130-101530.gz", "compressed");
    write("app", "33.log", "of another attempt\n");
    const sidecar = write("sidecar", "0.log", "beside\n");

    const { id, logs, saved } = await save([app, sidecar]);

    expect(readdirSync(join(logs, "app")).toSorted()).toEqual([
      "3.log",
      "3.log.20240130-101530.gz",
      "3.log.20240131-101530",
    ]);
    expect(readFileSync(join(logs, "app", "3.log"), "utf8")).toBe("current\n");
    expect(readFileSync(join(logs, "sidecar", "0.log"), "utf8")).toBe("beside\n");
    expect(readFileSync(app, "utf8")).toBe("current\n");
    expect(saved).toHaveLength(4);
    await shop.journal.close();
    expect((await readHistory(shop.stateDir.journal)).records).toMatchObject([
      { id, state: "done", action: { kind: "save-logs", sandboxId, paths: [app, sidecar] } },
    ]);
  });

  test("keeps the end of a long log, from the start of a line", async () => {
    const lines = Array.from({ length: 1000 }, (_unused, index) => `line ${index}\n`);
    const path = write("app", "0.log", lines.join(""));

    const { logs, saved } = await save([path], { bytesPerFile: 25, bytesInAll: 1000 });

    expect(readFileSync(join(logs, "app", "0.log"), "utf8")).toBe("line 998\nline 999\n");
    expect(saved).toMatchObject([{ bytes: 18, ofBytes: lines.join("").length }]);
  });

  test("keeps the newest first when not all fit, and no part of a compressed one", async () => {
    const path = write("app", "0.log", "current\n");
    utimesSync(write("app", "0.log.1", "one....\n"), 2000, 2000);
    utimesSync(write("app", "0.log.2", "two....\n"), 3000, 3000);
    utimesSync(write("app", "0.log.3.gz", "x".repeat(9)), 4000, 4000);

    const { logs, skipped } = await save([path], { bytesPerFile: 8, bytesInAll: 16 });

    expect(readdirSync(join(logs, "app")).toSorted()).toEqual(["0.log", "0.log.2"]);
    expect(skipped).toHaveLength(2);
  });

  test("follows no symbolic link, waits for no FIFO, and says what it passed over", async () => {
    writeFileSync(join(shop.caches, "secret"), "secret");
    symlinkSync(join(shop.caches, "secret"), join(pod, "app", "0.log"));
    execFileSync("mkfifo", [join(pod, "app", "0.log.1")]);
    symlinkSync(join(pod, "sidecar"), join(pod, "linked"));
    write("sidecar", "0.log", "content");

    const { saved, skipped } = await save([
      join(pod, "app", "0.log"),
      join(pod, "linked", "0.log"),
      join(pod, "absent", "0.log"),
    ]);

    expect(saved).toEqual([]);
    expect(skipped.toSorted()).toEqual([
      `${pod}/absent/0.log is not there.`,
      `${pod}/app/0.log is a symbolic link.`,
      `${pod}/app/0.log.1 is a FIFO.`,
      expect.stringContaining(`${pod}/linked is a symbolic link`),
    ]);
  });

  test("fails as a value when it cannot be written", async () => {
    const path = write("app", "0.log", "content");
    execFileSync("rm", ["-r", shop.stateDir.quarantine]);

    const outcome = await saveLogs(shop, { ...WHY, sandboxId, logPaths: [path] });

    expect(outcome).toMatchObject({ outcome: "failed" });
  });
});
