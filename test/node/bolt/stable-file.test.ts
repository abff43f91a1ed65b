import { closeSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../../lab/command.ts";
import { readBolt } from "../../../src/node/bolt/read-bolt.ts";
import { MAX_BOLT_BYTES, readStable } from "../../../src/node/bolt/stable-file.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { metaBytes, writeBolt } from "./write-bolt.ts";

const PAGE = 4096;
let dir: ReturnType<typeof tempDir>;
let path: string;

beforeEach(() => {
  dir = tempDir();
  path = dir.join("meta.db");
  writeFileSync(path, writeBolt({ a: "1" }));
});
afterEach(() => dir.remove());

/** What a writer does at the end of each transaction. */
function commit(transaction: bigint): void {
  const fd = openSync(path, "r+");
  const meta = metaBytes({ pageSize: PAGE, root: 3, highWater: 4, transaction });
  writeSync(fd, meta, 0, meta.length, Number(transaction % 2n) * PAGE + 16);
  closeSync(fd);
}

describe("reading a file that other processes may write", () => {
  test("returns the first read when there is no writer", () => {
    let readings = 0;
    const reading = readStable(path, "/meta.db", (source) => {
      readings += 1;
      return readBolt(source, () => true).damage;
    });
    expect(reading).toEqual({ status: "read", value: [], oddities: [] });
    expect(readings).toBe(1);
  });

  test("starts again when a transaction ended meanwhile", () => {
    let readings = 0n;
    const reading = readStable(path, "/meta.db", () => {
      readings += 1n;
      if (readings < 3n) commit(100n + readings);
      return readings;
    });
    expect(reading).toEqual({ status: "read", value: 3n, oddities: [] });
  });

  test("fails when a transaction ends during each try", () => {
    let readings = 0n;
    const reading = readStable(path, "/meta.db", () => {
      readings += 1n;
      commit(100n + readings);
    });
    expect(reading).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("/meta.db was written to") },
    });
  });

  test("reports a file that is truncated meanwhile as damaged, without an exception", () => {
    const reading = readStable(path, "/meta.db", (source) => {
      truncateSync(path, 2 * PAGE);
      return readBolt(source, () => true).damage;
    });
    expect(reading).toMatchObject({
      status: "read",
      value: [{ page: 3, reason: "lies beyond the end of the file" }, {}],
    });
  });

  test("reports a path that is not a file, too large or missing", async () => {
    mkdirSync(dir.join("folder"));
    await run(["mkfifo", dir.join("pipe")]);
    writeFileSync(dir.join("large"), "");
    truncateSync(dir.join("large"), MAX_BOLT_BYTES + 1);
    symlinkSync(path, dir.join("link"));
    symlinkSync(dir.join("link-2"), dir.join("link-1"));
    symlinkSync(dir.join("link-1"), dir.join("link-2"));
    const kinds = ["folder", "pipe", "large", "link", "link-1", "nothing", "meta.db/inside"].map((name) => {
      const reading = readStable(dir.join(name), "/meta.db", () => "used");
      return reading.status === "failed" ? reading.error.message : reading.status;
    });
    expect(kinds).toEqual([
      "/meta.db is not a regular file",
      "/meta.db is not a regular file",
      `/meta.db has ${MAX_BOLT_BYTES + 1} bytes; more than ${MAX_BOLT_BYTES} are not read`,
      "read",
      "/meta.db could not be opened (ELOOP)",
      "absent",
      "absent",
    ]);
  });
});
