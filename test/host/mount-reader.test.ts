import { constants, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, expect, test } from "vitest";
import { holdDirectory } from "../../src/heal/quarantine/file-identity.ts";
import {
  existsSync,
  lateMount,
  lstatSync,
  openFile,
  readlinkSync,
  readThroughChild,
  refuseBelow,
  statfsSync,
  statSync,
} from "../../src/host/guarded-fs.ts";
import { askMount, closeMountReader } from "../../src/host/mount-reader.ts";
import { listDirectory, readRegularFile, readTail } from "../../src/host/safe-fs.ts";
import { tempDir } from "../support/temp-dir.ts";

const dir = tempDir();
const MOUNT = dir.join("mount");
const LARGE = Array.from({ length: 40_000 }, (_, line) => `line ${line}\n`).join("");
mkdirSync(`${MOUNT}/many`, { recursive: true });
writeFileSync(`${MOUNT}/small`, "text");
writeFileSync(`${MOUNT}/large`, LARGE);
symlinkSync("small", `${MOUNT}/link`);
for (let index = 0; index < 1500; index += 1) writeFileSync(`${MOUNT}/many/${index}`, "");
afterEach(() => refuseBelow([]));
afterAll(() => {
  closeMountReader();
  dir.remove();
});

/** The same, read here and through the child. */
function bothWays<T>(read: () => T): readonly [T, T] {
  const here = read();
  readThroughChild([MOUNT], askMount);
  return [here, read()];
}

test.each<readonly [string, () => unknown]>([
  ["a small file", () => readRegularFile(`${MOUNT}/small`)],
  ["a file in several pieces", () => readRegularFile(`${MOUNT}/large`)],
  ["the end of a file", () => readTail(`${MOUNT}/large`, 100_000)],
  ["a link where a file is expected", () => readRegularFile(`${MOUNT}/link`)],
  ["a missing file", () => readRegularFile(`${MOUNT}/none`)],
  ["a directory that is missing", () => listDirectory(`${MOUNT}/none`)],
  ["the target of a link", () => readlinkSync(`${MOUNT}/link`)],
  ["the type of the file system", () => statfsSync(MOUNT).type],
  ["whether something exists", () => [existsSync(`${MOUNT}/small`), existsSync(`${MOUNT}/none`)]],
  ["that nothing is there", () => lstatSync(`${MOUNT}/none`, { throwIfNoEntry: false })],
])("a child reads %s as this process does", (_what, read) => {
  const [here, there] = bothWays(read);

  expect(there).toEqual(here);
});

test("a child lists thousands of entries, with their types", () => {
  readThroughChild([MOUNT], askMount);

  const listing = listDirectory(`${MOUNT}/many`);
  expect(listing.kind === "listed" && listing.entries.map(({ name }) => name).toSorted()).toEqual(
    readdirSync(`${MOUNT}/many`).toSorted(),
  );
  expect(listDirectory(MOUNT)).toMatchObject({
    entries: expect.arrayContaining([
      { name: "many", kind: "directory" },
      { name: "small", kind: "file" },
      { name: "link", kind: "symlink" },
    ]),
  });
});

test("owner, inode, size and times are those of the file", () => {
  const [here, there] = bothWays(() => statSync(`${MOUNT}/large`));

  for (const field of ["dev", "ino", "uid", "mode", "size", "mtimeMs", "ctimeMs", "mtime"] as const)
    expect(there[field]).toEqual(here[field]);
  expect([there.isFile(), there.isDirectory(), there.isSocket()]).toEqual([true, false, false]);
});

test("after one late call everything below such mounts fails at once, and the mount is known", () => {
  const other = dir.join("other");
  let calls = 0;
  const never = (): undefined => {
    calls += 1;
  };
  readThroughChild([MOUNT, other], never);

  expect(() => openFile(`${MOUNT}/small`, constants.O_RDONLY)).toThrow(/mounted at .*\/mount does not answer/);
  expect(listDirectory(`${MOUNT}/many`)).toEqual({ kind: "refused", reason: "could not be read (ETIMEDOUT)" });
  expect(() => lstatSync(`${other}/x`)).toThrow(/does not answer/);
  expect([lateMount(), calls]).toEqual([MOUNT, 1]);
  expect(readFileSync(`${MOUNT}/small`, "utf8")).toBe("text");
});

test("what is found on the way to a mount asks nothing of it, whether it hangs already or may do so", () => {
  const asked: string[] = [];
  readThroughChild([MOUNT], (request) => {
    asked.push(request.call);
    return { error: "EIO" };
  });

  expect(() => lstatSync(`${MOUNT}/small`)).toThrow("EIO");
  expect(asked).toEqual(["lstat"]);
});

test("nothing is changed where a file system may stop answering in the middle", () => {
  readThroughChild([MOUNT], askMount);

  expect(holdDirectory("/", `${MOUNT}/many`)).toMatchObject({
    ok: false,
    refusal: { message: expect.stringContaining("unghost changes nothing there") },
  });
  refuseBelow([]);
  const held = holdDirectory("/", `${MOUNT}/many`);
  expect(held.ok).toBe(true);
  if (held.ok) held.value?.close();
});
