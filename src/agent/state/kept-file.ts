import { join } from "node:path";
import type { SessionOptions } from "../../heal/session.ts";
import { writeDurably } from "../../heal/state/durable-files.ts";
import { openStateDir } from "../../heal/state/state-dir.ts";
import { describeError } from "../../host/source.ts";

interface KeptFileOptions {
  /** The minimum interval between two writes. */
  readonly everyMs: number;
  /** Returns the error. */
  readonly write: () => Promise<string | undefined>;
  /** Called for an error when it starts or changes. */
  readonly onProblem: (problem: string) => void;
}

/** A file that follows changes: the first one is written at once, and later ones together when the interval is over. */
export function keepFile({ everyMs, onProblem, ...options }: KeptFileOptions) {
  let isChanged = false;
  let pause: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let reported: string | undefined;

  async function write(): Promise<void> {
    isChanged = false;
    const problem = await options.write();
    if (problem !== undefined && problem !== reported) onProblem(problem);
    reported = problem;
  }

  function writeUnlessPausing(): void {
    if (!isChanged || pause !== undefined) return;
    writing = writing.then(write);
    pause = setTimeout(() => {
      pause = undefined;
      writeUnlessPausing();
    }, everyMs).unref();
  }

  return {
    changed: (): void => {
      isChanged = true;
      writeUnlessPausing();
    },
    /** Writes pending changes. */
    close: async (): Promise<void> => {
      clearTimeout(pause);
      await writing;
      if (isChanged) await write();
    },
  };
}

export type StatePlace = Pick<SessionOptions, "stateDir" | "uid">;

/** Writes a file of the state directory. Returns the error, in which `what` is the subject. */
export async function writeStateFile({ stateDir, uid }: StatePlace, name: string, what: string, text: () => string) {
  const opened = await openStateDir(stateDir, uid);
  if (!opened.ok) return opened.refusal.message;
  try {
    await writeDurably(join(opened.value.root, name), text());
    return undefined;
  } catch (thrown) {
    return `${what} could not be kept: ${describeError(thrown)}`;
  }
}
