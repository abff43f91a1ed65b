import { closeSync, fstatSync, openSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { writesToJournald } from "../../src/cli/process.ts";

test("only the stream that systemd connected is the journal", () => {
  const fd = openSync("/dev/null", "w");
  onTestFinished(() => closeSync(fd));
  const { dev, ino } = fstatSync(fd, { bigint: true });

  expect(writesToJournald({ JOURNAL_STREAM: `${dev}:${ino}` }, fd)).toBe(true);
  for (const other of [undefined, "", "0:0", `${dev}:`, "x:y", `${dev}:${ino}1`]) {
    expect([other, writesToJournald({ JOURNAL_STREAM: other }, fd)]).toEqual([other, false]);
  }
});
