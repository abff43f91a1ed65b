import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeAll } from "../../src/cli/io.ts";
import { tempDir } from "../node/temp-dir.ts";

/** Far more than a pipe holds. */
const TEXT = "x".repeat(1_000_000);

test("a full pipe is waited for, not polled in a loop, and gets every byte", async () => {
  const pipe = join(tempDir(), "pipe");
  spawnSync("mkfifo", [pipe]);
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const reader = spawn("sh", ["-c", `sleep 1; head -c ${TEXT.length} '${pipe}' | wc -c`]);
  let counted = "";
  reader.stdout.on("data", (chunk) => (counted += String(chunk)));
  const started = performance.now();
  const before = process.cpuUsage();

  writeAll(fd, TEXT);

  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan((performance.now() - started) / 2);
  await once(reader, "close");
  closeSync(fd);
  expect(counted.trim()).toBe(String(TEXT.length));
});
