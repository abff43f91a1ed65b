import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { readProcFile, readProcLink } from "../../src/host/proc.ts";
import { tempDir } from "../support/temp-dir.ts";

const LONG = Array.from({ length: 100_000 }, (_, index) => `line ${index}`).join("\n");

function fileWith(text: string): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  writeFileSync(dir.join("file"), text);
  return dir.join("file");
}

test("reads a file of any length completely, up to the limit", () => {
  expect(readProcFile(fileWith(LONG), 16 * 1024 * 1024)).toEqual({ kind: "content", text: LONG });
});

test.each([1, 1000, 128 * 1024, 128 * 1024 + 1, 300_000])("reads at most %i bytes on request", (most) => {
  expect(readProcFile(fileWith(LONG), most)).toEqual({ kind: "content", text: LONG.slice(0, most) });
});

test("an empty file is empty, and a missing one is gone", () => {
  expect(readProcFile(fileWith(""))).toEqual({ kind: "content", text: "" });
  expect(readProcFile("/proc/self/nowhere")).toEqual({ kind: "gone" });
});

test("a link that may not be read is denied while its process exists, and gone when that has ended meanwhile", async () => {
  const refused = () => {
    throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  };
  const ended = spawn("true");
  await once(ended, "exit");

  expect(readProcLink("/proc/self/ns/net", refused)).toEqual({ kind: "denied" });
  expect(readProcLink(`/proc/${ended.pid}/ns/net`, refused)).toEqual({ kind: "gone" });
});
