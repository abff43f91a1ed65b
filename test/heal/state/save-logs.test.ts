import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readHistory } from "../../../src/heal/journal/reader.ts";
import { type SaveLogsRequest, saveLogs } from "../../../src/heal/quarantine/save-logs.ts";
import { type HealFixture, makeHealFixture, WHY } from "../heal-fixture.ts";

const sandboxId = "f".repeat(64);
let fixture: HealFixture;
let pod: string;

beforeEach(async () => {
  fixture = await makeHealFixture();
  pod = join(fixture.caches, "default_web_1234");
  mkdirSync(join(pod, "app"), { recursive: true });
  mkdirSync(join(pod, "sidecar"));
});
afterEach(() => fixture.remove());

function write(container: string, name: string, content: string): string {
  const path = join(pod, container, name);
  writeFileSync(path, content);
  return path;
}

async function save(logPaths: readonly string[], limits?: SaveLogsRequest["limits"]) {
  const outcome = await saveLogs(fixture, { ...WHY, sandboxId, logPaths, ...(limits !== undefined && { limits }) });
  if (outcome.outcome !== "saved") throw new Error(outcome.refusal.message);
  return { ...outcome, logs: join(fixture.stateDir.quarantine, outcome.id, "logs") };
}

describe("saveLogs", () => {
  test("copies the logs of all containers with their rotated files, and leaves the originals", async () => {
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
    await fixture.journal.close();
    expect((await readHistory(fixture.stateDir.journal)).records).toMatchObject([
      { id, state: "done", action: { kind: "save-logs", sandboxId, paths: [app, sidecar] } },
    ]);
  });

  test("copies the end of a long log, from the start of a line", async () => {
    const lines = Array.from({ length: 1000 }, (_unused, index) => `line ${index}\n`);
    const path = write("app", "0.log", lines.join(""));

    const { logs, saved } = await save([path], { bytesPerFile: 25, bytesInAll: 1000 });

    expect(readFileSync(join(logs, "app", "0.log"), "utf8")).toBe("line 998\nline 999\n");
    expect(saved).toEqual([path]);
  });

  test("copies the newest first when not all fit, and never a part of a compressed file", async () => {
    const path = write("app", "0.log", "current\n");
    utimesSync(write("app", "0.log.1", "one....\n"), 2000, 2000);
    utimesSync(write("app", "0.log.2", "two....\n"), 3000, 3000);
    utimesSync(write("app", "0.log.3.gz", "x".repeat(9)), 4000, 4000);

    const { logs, skipped } = await save([path], { bytesPerFile: 8, bytesInAll: 16 });

    expect(readdirSync(join(logs, "app")).toSorted()).toEqual(["0.log", "0.log.2"]);
    expect(skipped).toHaveLength(2);
  });

  test("does not block on a FIFO, and tolerates files that are gone", async () => {
    execFileSync("mkfifo", [join(pod, "app", "0.log.1")]);
    const empty = write("app", "0.log", "");

    const { saved, skipped } = await save([empty, join(pod, "absent", "0.log"), join(pod, "sidecar", "0.log")]);

    expect(saved).toEqual([empty]);
    expect(skipped).toEqual([`${pod}/app/0.log.1 is a FIFO.`]);
  });

  describe("a log that is a symbolic link", () => {
    const docker = () => join(fixture.caches, "docker", "containers", sandboxId);

    function dockerLog(content: string): string {
      mkdirSync(docker(), { recursive: true });
      const path = join(docker(), `${sandboxId}-json.log`);
      writeFileSync(path, content);
      return path;
    }

    function link(to: string, container = "app"): string {
      const path = join(pod, container, "0.log");
      symlinkSync(to, path);
      return path;
    }

    test("saves the target, with the rotated files on both sides", async () => {
      const target = dockerLog("docker's\n");
      writeFileSync(`${target}.1`, "older\n");
      const path = link(target);
      write("app", "0.log.20240131-101530", "rotated\n");

      const { logs, saved } = await save([path]);

      expect(saved).toEqual([join(pod, "app", "0.log.20240131-101530"), target, `${target}.1`]);
      expect(readFileSync(join(logs, "app", `${sandboxId}-json.log`), "utf8")).toBe("docker's\n");
    });

    test("saves through a relative link and through a linked directory", async () => {
      const target = dockerLog("docker's\n");
      const path = link(relative(join(pod, "app"), target));
      symlinkSync(join(pod, "app"), join(pod, "linked"));

      expect((await save([path])).saved).toHaveLength(1);
      expect((await save([join(pod, "linked", "0.log")])).saved).toHaveLength(1);
    });

    test("saves nothing when the target is gone", async () => {
      const target = dockerLog("");
      rmSync(target);

      expect((await save([link(target)])).saved).toEqual([]);
    });

    test.each<readonly [string, () => string]>([
      ["leads to a file that is not a log", () => link("/etc/shadow")],
      ["leads to itself", () => link(join(pod, "app", "0.log"))],
      [
        "leads to another link",
        () => {
          symlinkSync(dockerLog("x"), join(pod, "between.log"));
          return link(join(pod, "between.log"));
        },
      ],
      [
        "is owned by another user",
        () => {
          const path = link(dockerLog("x"));
          lchownSync(path, 65534, 65534);
          return path;
        },
      ],
      [
        "is in another user's directory",
        () => {
          const path = link(dockerLog("x"));
          chownSync(dirname(path), 65534, 65534);
          return path;
        },
      ],
      [
        "leads to a file of another user",
        () => {
          const target = dockerLog("x");
          chownSync(target, 65534, 65534);
          return link(target);
        },
      ],
      [
        "leads into a world-writable directory",
        () => {
          const target = dockerLog("x");
          chmodSync(docker(), 0o777);
          return link(target);
        },
      ],
      [
        "passes through another user's link to a directory",
        () => {
          dockerLog("x");
          symlinkSync(docker(), join(fixture.caches, "theirs"));
          lchownSync(join(fixture.caches, "theirs"), 65534, 65534);
          return link(join(fixture.caches, "theirs", `${sandboxId}-json.log`));
        },
      ],
      [
        "is in a directory that another user's link leads to",
        () => {
          write("sidecar", "0.log", "x");
          symlinkSync(join(pod, "sidecar"), join(pod, "linked"));
          lchownSync(join(pod, "linked"), 65534, 65534);
          return join(pod, "linked", "0.log");
        },
      ],
    ])("refuses and copies nothing when it %s", async (_, make) => {
      const logPaths = [write("app", "other.log", "of another container"), make()];

      const outcome = await saveLogs(fixture, { ...WHY, sandboxId, logPaths });

      expect(outcome).toMatchObject({ outcome: "refused" });
      expect(readdirSync(fixture.stateDir.quarantine)).toEqual([]);
    });
  });

  test("returns an error when it cannot write", async () => {
    const path = write("app", "0.log", "content");
    execFileSync("rm", ["-r", fixture.stateDir.quarantine]);

    const outcome = await saveLogs(fixture, { ...WHY, sandboxId, logPaths: [path] });

    expect(outcome).toMatchObject({ outcome: "failed" });
  });
});
