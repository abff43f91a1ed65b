import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { provePath } from "../../src/host/trusted-path.ts";
import { asUnprivileged, fill, isRoot, tempDir } from "../node/temp-dir.ts";

const UNPRIVILEGED_UID = 65534;

/** A node with a plugin directory of root. */
function node(): string {
  return fill(tempDir(), { "opt/cni/bin/bridge": "x", "var/lib/.keep": "" });
}

describe("a path is trusted", () => {
  test("when it and all its parents are writable by root only", () => {
    expect(provePath(node(), "/opt/cni/bin/bridge")).toEqual({ kind: "trusted" });
  });

  test("through links of root, including absolute ones, which are resolved inside the node", () => {
    const root = node();
    symlinkSync("/opt/cni/bin", `${root}/var/lib/bin`);
    symlinkSync("../lib/bin/bridge", `${root}/var/lib/up`);

    expect(provePath(root, "/var/lib/bin/bridge")).toEqual({ kind: "trusted" });
    expect(provePath(root, "/var/lib/up")).toEqual({ kind: "trusted" });
  });

  test("below a sticky directory, where other users cannot replace root's entries", () => {
    const root = fill(tempDir(), { "tmp/own/x": "" });
    chmodSync(`${root}/tmp`, 0o1777);

    expect(provePath(root, "/tmp/own/x")).toEqual({ kind: "trusted" });
  });

  test("when it is a socket that a group may connect to", async () => {
    const root = tempDir();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${root}/runtime.sock`, resolve));
    onTestFinished(() => void server.close());
    chmodSync(`${root}/runtime.sock`, 0o660);

    expect(provePath(root, "/runtime.sock")).toEqual({ kind: "trusted" });
  });

  test("through another process's root directory, where its links start", () => {
    const root = node();
    symlinkSync("/opt/cni/bin", `${root}/var/lib/bin`);

    expect(provePath("/", `/proc/${process.pid}/root${root}/opt/cni/bin`)).toEqual({ kind: "trusted" });
  });

  test.runIf(isRoot)("of the user who runs unghost without being root", async () => {
    const root = node();
    execFileSync("chown", ["-R", `${UNPRIVILEGED_UID}:${UNPRIVILEGED_UID}`, root]);

    expect(await asUnprivileged(() => provePath(root, "/opt/cni/bin/bridge"))).toEqual({ kind: "trusted" });
    expect(provePath(root, "/opt/cni/bin/bridge")).toMatchObject({ kind: "refused", path: "/" });
  });
});

test("a missing path is missing, not refused", () => {
  expect(provePath(node(), "/opt/cni/other/x")).toEqual({ kind: "missing" });
  expect(provePath(tempDir(), "/none")).toEqual({ kind: "missing" });
});

describe.runIf(isRoot)("a path is refused, with the offending entry and the remedy", () => {
  test.each([
    ["the file", "/opt/cni/bin/bridge"],
    ["its directory", "/opt/cni/bin"],
    ["a directory far above", "/opt"],
    ["the root directory", "/"],
  ])("when another user owns %s", (_what, foreign) => {
    const root = node();
    chownSync(`${root}${foreign}`, 1001, 127);

    expect(provePath(root, "/opt/cni/bin/bridge")).toEqual({
      kind: "refused",
      code: "foreign-owner",
      path: foreign,
      detail: `${foreign} is owned by uid 1001, not by root`,
      next: `Check who put it there, then: chown root: ${foreign}`,
    });
  });

  test.each([
    ["a group", 0o775],
    ["everybody", 0o757],
  ])("when %s may write a directory above it", (_who, mode) => {
    const root = node();
    chmodSync(`${root}/opt/cni`, mode);

    expect(provePath(root, "/opt/cni/bin/bridge")).toMatchObject({
      code: "writable-by-others",
      path: "/opt/cni",
      next: "Check what lies there, then: chmod go-w /opt/cni",
    });
  });

  test("when the sticky bit is on the file itself", () => {
    const root = node();
    chmodSync(`${root}/opt/cni/bin/bridge`, 0o1777);

    expect(provePath(root, "/opt/cni/bin/bridge")).toMatchObject({ code: "writable-by-others" });
  });

  test("when a link on the way belongs to another user, wherever it leads", () => {
    const root = node();
    mkdirSync(`${root}/tmp`);
    chmodSync(`${root}/tmp`, 0o1777);
    symlinkSync("/opt/cni/bin", `${root}/tmp/bin`);
    lchownSync(`${root}/tmp/bin`, 1001, 127);

    expect(provePath(root, "/tmp/bin/bridge")).toMatchObject({ path: "/tmp/bin", next: expect.stringContaining("-h") });
  });

  test("when a link of root leads to another user's file", () => {
    const root = node();
    fill(root, { "home/eve/bin/bridge": "x" });
    chownSync(`${root}/home/eve`, 1001, 127);
    symlinkSync("/home/eve/bin", `${root}/opt/cni/evil`);

    expect(provePath(root, "/opt/cni/evil/bridge")).toMatchObject({ path: "/home/eve" });
  });

  test("when links form a loop", () => {
    const root = tempDir();
    symlinkSync("b", `${root}/a`);
    symlinkSync("a", `${root}/b`);

    expect(provePath(root, "/a")).toMatchObject({ kind: "refused", code: "link-loop" });
  });

  test("with control characters escaped", () => {
    const root = tempDir();
    writeFileSync(`${root}/x\u001b[2J`, "");
    chownSync(`${root}/x\u001b[2J`, 1001, 127);

    expect(provePath(root, "/x\u001b[2J")).toMatchObject({ path: "/x\\x1b[2J" });
  });
});
