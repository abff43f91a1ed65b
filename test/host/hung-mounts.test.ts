import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, expect, test } from "vitest";
import { existsSync, firstMountOn, lstatSync, refuseBelow } from "../../src/host/guarded-fs.ts";
import { resolveOnHost } from "../../src/host/paths.ts";
import { listDirectory, readRegularFile, readTail } from "../../src/host/safe-fs.ts";
import { provePath } from "../../src/host/trusted-path.ts";
import { tempDir } from "../support/temp-dir.ts";

const dir = tempDir();
afterAll(() => dir.remove());
const HUNG = dir.join("kubelet/pods");
mkdirSync(HUNG, { recursive: true });
writeFileSync(`${HUNG}/file`, "text");
mkdirSync(dir.join("log"));
symlinkSync("../kubelet/pods", dir.join("log/pods"));
symlinkSync(HUNG, dir.join("absolute"));
afterEach(() => refuseBelow([]));

test.each([
  ["itself", "kubelet/pods", true],
  ["below it", "kubelet/pods/a/b", true],
  ["through a relative link", "log/pods/a", true],
  ["through an absolute link", "absolute", true],
  ["with dots", "log/../kubelet/./pods", true],
  ["above it", "kubelet", false],
  ["beside it", "kubelet/pods-2", false],
])("a mount is found on the way to a path: %s", (_what, path, isOn) => {
  expect(firstMountOn(`${dir.path}/${path}`, new Set([HUNG]))).toBe(isOn ? HUNG : undefined);
});

test("nothing below a mount that does not answer is read, and nothing there counts as missing", () => {
  refuseBelow([HUNG]);

  expect(() => lstatSync(`${HUNG}/file`)).toThrow(/does not answer/);
  expect(listDirectory(HUNG)).toEqual({ kind: "refused", reason: "could not be read (ETIMEDOUT)" });
  expect(readRegularFile(`${HUNG}/file`)).toMatchObject({ kind: "closed", reason: "could not be read (ETIMEDOUT)" });
  expect(readRegularFile(`${HUNG}/none`)).toMatchObject({ kind: "closed" });
  expect(readTail(dir.join("log/pods/file"), 100)).toMatchObject({ kind: "unreadable" });
  expect(provePath("/", `${HUNG}/file`)).toMatchObject({ kind: "refused", code: "unreadable" });
  expect(resolveOnHost("/", dir.join("log/pods/file"), "follow")).toContain("/pods/file");
  expect(existsSync(`${HUNG}/file`)).toBe(false);
  expect(listDirectory(dir.join("kubelet")).kind).toBe("listed");
});

test("what answers again is read again", () => {
  refuseBelow([HUNG]);
  refuseBelow([]);

  expect(readRegularFile(`${HUNG}/file`)).toMatchObject({ kind: "content", text: "text" });
});
