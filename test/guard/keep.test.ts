import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { dropOldRecords, queueUndone } from "../../src/guard/keep.ts";
import { readQueue } from "../../src/guard/queue.ts";
import { distrustOf } from "../../src/guard/state-files.ts";

test("a record goes after a day, unless the runtime has a result of the same attachment", () => {
  const root = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const stateDir = join(root, "state");
  for (const dir of ["state/attachments", "state/failures", "var/lib/cni/results"])
    mkdirSync(join(root, dir), { recursive: true });
  writeFileSync(join(root, "var/lib/cni/results/net-runs-eth0"), "{}");
  const records = ["runs@eth0@bridge", "gone@eth0@bridge", ".123.draft"].map((name) => `attachments/${name}`);
  records.push("failures/gone@eth0@bridge");
  for (const name of records) writeFileSync(join(stateDir, name), "");
  const there = (): readonly boolean[] => records.map((name) => existsSync(join(stateDir, name)));

  dropOldRecords(root, stateDir, Date.now() + 23 * 3_600_000);
  expect(there()).toEqual([true, true, true, true]);
  dropOldRecords(root, stateDir, Date.now() + 25 * 3_600_000);
  expect(there()).toEqual([true, false, false, false]);
});

test("an attachment whose namespace is gone and whose DEL never came is queued, and no other", () => {
  const stateDir = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  for (const dir of ["attachments", "queue", "netns"]) mkdirSync(join(stateDir, dir));
  const netns = (name: string): string => join(stateDir, "netns", name);
  writeFileSync(netns("runs"), "");
  const attach = (container: string, phase: string, at: string, boot = "b"): void => {
    const environment = `CNI_NETNS=${at}`;
    const lines = [
      "attachment 1",
      `phase ${phase}`,
      `boot ${boot}`,
      `env ${environment.length}`,
      environment,
      "config 2",
      "{}",
      "end",
      "",
    ];
    writeFileSync(join(stateDir, `attachments/${container}@eth0@bridge`), lines.join("\n"));
  };
  attach("gone", "completed", netns("gone"));
  attach("running", "completed", netns("runs"));
  attach("failed", "failed", netns("gone"));
  attach("cut-off", "started", netns("gone"), "earlier");
  attach("by-pid", "completed", "/proc/1/ns/no");
  attach("no-directory", "completed", join(stateDir, "elsewhere/gone"));

  const later = Date.now() + 601_000;
  queueUndone(stateDir, Date.now(), { boot: "b", uptimeSeconds: 5000 });
  queueUndone(stateDir, later, { boot: "b", uptimeSeconds: 599 });
  expect(readQueue(stateDir)).toEqual([]);
  queueUndone(stateDir, later, { boot: "b", uptimeSeconds: 601 });

  expect(
    readQueue(stateDir)
      .map(({ key }) => key.container)
      .toSorted(),
  ).toEqual(["cut-off", "gone"]);
});

test("a record of before a step of the clock ages from the step on", () => {
  const stateDir = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  mkdirSync(join(stateDir, "failures"));
  const path = join(stateDir, "failures/web@eth0@bridge");
  writeFileSync(path, "");
  const now = Date.now() - 400 * 24 * 3_600_000;

  dropOldRecords("/", stateDir, now);
  dropOldRecords("/", stateDir, now + 23 * 3_600_000);
  expect(existsSync(path)).toBe(true);
  dropOldRecords("/", stateDir, now + 25 * 3_600_000);
  expect(existsSync(path)).toBe(false);
});

test.each([
  {
    what: "the directory of records belongs to another user",
    spoil: (dir: string) => chownSync(join(dir, "queue"), 1, 1),
  },
  { what: "others may write into it", spoil: (dir: string) => chmodSync(join(dir, "queue"), 0o777) },
  {
    what: "the state itself is a link",
    spoil: (dir: string) => (renameSync(dir, `${dir}.real`), symlinkSync(`${dir}.real`, dir)),
  },
])("state is not used where $what", ({ spoil }) => {
  const dir = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => [dir, `${dir}.real`].forEach((one) => rmSync(one, { recursive: true, force: true })));
  mkdirSync(join(dir, "queue"));
  expect(distrustOf(dir, ["queue", "not-there"])).toBeUndefined();

  spoil(dir);

  expect(distrustOf(dir, ["queue", "not-there"])).toMatch(/owned by uid 1|can be written|is a link/);
});
