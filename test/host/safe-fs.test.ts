import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { listDirectory, readRegularFile } from "../../src/host/safe-fs.ts";
import { errorLabel } from "../../src/host/source.ts";
import { printable } from "../../src/host/text.ts";
import { asUnprivileged, fill, isRoot, makePipe, makeSparse, tempDir, writeRawName } from "../node/temp-dir.ts";

describe("listDirectory", () => {
  test("distinguishes files, directories, links and FIFOs and follows none", () => {
    const dir = fill(tempDir(), { file: "x" });
    mkdirSync(`${dir}/directory`);
    symlinkSync("/etc/passwd", `${dir}/link`);
    symlinkSync("/nowhere", `${dir}/dangling`);
    makePipe(`${dir}/pipe`);

    const listing = listDirectory(dir);

    expect(listing.kind === "listed" && Object.fromEntries(listing.entries.map((e) => [e.name, e.kind]))).toEqual({
      file: "file",
      directory: "directory",
      link: "symlink",
      dangling: "symlink",
      pipe: "other",
    });
  });

  test("lists names with line breaks; returns names that are not UTF-8 separately, escaped", () => {
    const dir = fill(tempDir(), { "line\nbreak": "x" });
    writeRawName(dir, [0x61, 0xff, 0x62]);

    expect(listDirectory(dir)).toEqual({
      kind: "listed",
      entries: [{ name: "line\nbreak", kind: "file" }],
      undecodable: ["a\\u{fffd}b"],
    });
  });

  test("refuses a directory that is a link, a file or a FIFO; a missing one is absent", () => {
    const dir = fill(tempDir(), { file: "x" });
    symlinkSync(dir, `${dir}/link`);
    makePipe(`${dir}/pipe`);

    expect(listDirectory(`${dir}/link`)).toMatchObject({ kind: "refused", reason: expect.stringContaining("symlink") });
    expect(listDirectory(`${dir}/file`)).toMatchObject({ kind: "refused", reason: expect.stringContaining("a file") });
    expect(listDirectory(`${dir}/pipe`)).toMatchObject({ kind: "refused", reason: expect.stringContaining("pipe") });
    expect(listDirectory(`${dir}/missing`)).toEqual({ kind: "absent" });
    expect(listDirectory(`${dir}/file/below`).kind).not.toBe("listed");
  });

  test("refuses more entries than the limit", () => {
    const dir = fill(tempDir(), { a: "", b: "", c: "" });

    expect(listDirectory(dir, 2)).toMatchObject({ kind: "refused", reason: "holds more than 2 entries" });
    expect(listDirectory(dir, 3).kind).toBe("listed");
  });

  test.runIf(isRoot)("reports permission denied with the next step", async () => {
    const dir = tempDir();
    mkdirSync(`${dir}/secret`, { mode: 0o700 });

    const listing = await asUnprivileged(() => listDirectory(`${dir}/secret`));

    expect(listing).toEqual({ kind: "refused", reason: "may not be read (EACCES)", next: "run unghost as root" });
  });
});

describe("readRegularFile", () => {
  test("returns the text with its size", () => {
    const dir = fill(tempDir(), { file: "zażółć", empty: "" });

    expect(readRegularFile(`${dir}/file`)).toMatchObject({ kind: "content", text: "zażółć", size: 10 });
    expect(readRegularFile(`${dir}/empty`)).toMatchObject({ kind: "content", text: "", size: 0 });
  });

  test("reads a file larger than its own buffer completely", () => {
    const text = "0123456789".repeat(50_000);
    const dir = fill(tempDir(), { file: text });

    expect(readRegularFile(`${dir}/file`)).toMatchObject({ kind: "content", text });
  });

  test("does not follow a link", () => {
    const dir = tempDir();
    symlinkSync("/etc/passwd", `${dir}/link`);

    expect(readRegularFile(`${dir}/link`)).toEqual({ kind: "notRegular", reason: "is a symlink" });
  });

  test("does not block on a FIFO, read a directory, connect to a socket or open a device", async () => {
    const dir = tempDir();
    makePipe(`${dir}/pipe`);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${dir}/socket`, resolve));

    expect(readRegularFile(`${dir}/pipe`).kind).toBe("notRegular");
    expect(readRegularFile(dir).kind).toBe("notRegular");
    expect(readRegularFile(`${dir}/socket`).kind).toBe("notRegular");
    expect(readRegularFile("/dev/zero").kind).toBe("notRegular");
    server.close();
  });

  test("does not read a sparse file of 2 GB, and still returns its size", () => {
    const dir = tempDir();
    makeSparse(`${dir}/sparse`, 2 ** 31);

    expect(readRegularFile(`${dir}/sparse`)).toMatchObject({ kind: "closed", size: 2 ** 31 });
  });

  test.runIf(isRoot)("closes an unreadable file, and returns its size", async () => {
    const dir = fill(tempDir(), { secret: "x" });
    chmodSync(`${dir}/secret`, 0);

    expect(await asUnprivileged(() => readRegularFile(`${dir}/secret`))).toMatchObject({ kind: "closed", size: 1 });
  });

  test("returns gone for a missing file", () => {
    expect(readRegularFile(`${tempDir()}/missing`)).toEqual({ kind: "gone" });
  });

  test("does not throw for bytes that are not UTF-8", () => {
    const dir = tempDir();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        writeFileSync(`${dir}/bytes`, bytes);
        expect(readRegularFile(`${dir}/bytes`)).toMatchObject({ kind: "content", size: bytes.length });
      }),
      { numRuns: 50 },
    );
  });
});

describe("printable", () => {
  test.each([
    ["plain", "plain"],
    ["line\nbreak", "line\\x0abreak"],
    ["\u001b[31mred", "\\x1b[31mred"],
    ["\u202egnp.exe", "\\u{202e}gnp.exe"],
    ["zażółć", "zażółć"],
  ])("shows %j as %j", (name, shown) => {
    expect(printable(name)).toBe(shown);
  });

  test("leaves no control characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        expect(printable(name)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

test("errorCode accepts any thrown value", () => {
  expect(errorLabel(Object.assign(new Error("x"), { code: "EIO" }))).toBe("EIO");
  expect(errorLabel(new TypeError("x"))).toBe("TypeError");
  expect(errorLabel("x")).toBe("unknown error");
});
