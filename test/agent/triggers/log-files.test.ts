import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Hint, watchLogFiles } from "../../../src/agent/triggers/triggers.ts";
import { tempDir } from "../../node/temp-dir.ts";

const TROUBLE = 'level=error msg="StopPodSandbox for \\"abc\\" failed" error="failed to destroy network for sandbox"\n';
const CHATTER = 'level=info msg="StopPodSandbox for \\"abc\\" returns successfully"\n';

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => vi.useRealTimers());

/** A log with these lines, and the hints from added ones. */
function following(content: string): { readonly path: string; readonly hintsNow: () => number } {
  const path = join(tempDir(), "containerd.log");
  writeFileSync(path, content);
  const hints: Hint[] = [];
  const watch = watchLogFiles((hint) => hints.push(hint));
  onTestFinished(() => watch.close());
  watch.refresh([path, "/nowhere/kubelet.log"]);
  return {
    path,
    hintsNow: () => {
      vi.advanceTimersByTime(1000);
      return hints.splice(0).length;
    },
  };
}

describe("log watch", () => {
  test("hints at lines that may concern a sandbox in trouble, and at no others", () => {
    const { path, hintsNow } = following("");

    appendFileSync(path, CHATTER);
    expect(hintsNow()).toBe(0);
    appendFileSync(path, CHATTER + TROUBLE);
    expect(hintsNow()).toBe(1);
    expect(hintsNow()).toBe(0);
  });

  test("ignores lines written before the start", () => {
    expect(following(TROUBLE).hintsNow()).toBe(0);
  });

  test("continues in a rotated file, and in a truncated one", () => {
    const { path, hintsNow } = following(CHATTER.repeat(100));

    renameSync(path, `${path}.1`);
    writeFileSync(path, TROUBLE);
    expect(hintsNow()).toBe(1);
    writeFileSync(path, CHATTER.repeat(100));
    expect(hintsNow()).toBe(0);
    writeFileSync(path, TROUBLE);
    expect(hintsNow()).toBe(1);
  });

  test("reads only the end of a flood, once a second", () => {
    const { path, hintsNow } = following("");

    appendFileSync(path, TROUBLE.repeat(100_000));
    expect(hintsNow()).toBe(1);
    appendFileSync(path, TROUBLE + CHATTER.repeat(100_000));
    expect(hintsNow()).toBe(0);
  });
});
