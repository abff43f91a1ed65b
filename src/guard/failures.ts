import { join } from "node:path";
import { fileText } from "../host/safe-fs.ts";
import { describeError } from "../host/source.ts";
import { parseJson, property, stringIn } from "../host/text.ts";
import {
  type AttachmentKey,
  fileNameOf,
  type Moment,
  removeFile,
  secondsBetween,
  writeFileDurably,
} from "./state-files.ts";

/** The failed DELs of one attachment. */
export interface Failures {
  readonly first: Moment;
  readonly count: number;
}

/** With the one of now. Where nothing can be written (a full disk) the count stays, and more failures are passed on. */
export function countFailure(stateDir: string, key: AttachmentKey, now: Moment): Failures {
  const path = join(stateDir, "failures", fileNameOf(key));
  const before = parseFailures(fileText(path));
  const failures =
    before !== undefined && before.first.boot === now.boot
      ? { first: before.first, count: before.count + 1 }
      : { first: now, count: 1 };
  try {
    writeFileDurably(path, JSON.stringify(failures));
  } catch (error) {
    process.stderr.write(`unghost CNI guard: ${path} could not be written: ${describeError(error)}\n`);
  }
  return failures;
}

export function secondsFailing({ first }: Failures, now: Moment): number {
  return secondsBetween(first, now);
}

export function forgetFailures(stateDir: string, key: AttachmentKey): void {
  removeFile(join(stateDir, "failures", fileNameOf(key)));
}

function parseFailures(text: string): Failures | undefined {
  const stored = parseJson(text);
  const first = property(stored, "first");
  const [boot, count] = [stringIn(first, "boot"), property(stored, "count")];
  const uptimeSeconds = property(first, "uptimeSeconds");
  if (boot === undefined || typeof count !== "number" || typeof uptimeSeconds !== "number") return undefined;
  return { first: { boot, uptimeSeconds }, count };
}
