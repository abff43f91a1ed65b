import { writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { readProcFile } from "../../src/host/proc-fs.ts";
import { tempDir } from "../support/temp-dir.ts";

const LONG = Array.from({ length: 100_000 }, (_, index) => `line ${index}`).join("\n");

function fileWith(text: string): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  writeFileSync(dir.join("file"), text);
  return dir.join("file");
}

test("a file of any length is read whole, as long as it is asked for", () => {
  expect(readProcFile(fileWith(LONG), 16 * 1024 * 1024)).toEqual({ kind: "content", text: LONG });
});

test.each([1, 1000, 128 * 1024, 128 * 1024 + 1, 300_000])(
  "no more than %i bytes are read where no more are wanted",
  (most) => {
    expect(readProcFile(fileWith(LONG), most)).toEqual({ kind: "content", text: LONG.slice(0, most) });
  },
);

test("an empty one is empty, and one that is not there is gone", () => {
  expect(readProcFile(fileWith(""))).toEqual({ kind: "content", text: "" });
  expect(readProcFile("/proc/self/nowhere")).toEqual({ kind: "gone" });
});
