import { statSync } from "node:fs";
import { join, resolve } from "node:path";

/** The directory of unghost's persistent state. Rotated journals are beside the journal: journal.1, … */
export interface StateDir {
  readonly root: string;
  readonly journal: string;
  readonly quarantine: string;
  readonly lock: string;
}

export function stateDirLayout(root: string): StateDir {
  const absolute = resolve(root);
  return {
    root: absolute,
    journal: join(absolute, "journal"),
    quarantine: join(absolute, "quarantine"),
    lock: join(absolute, "lock"),
  };
}

/** Whether a run has written itself into the lock file. One that has ended left it empty. */
export function mayBeLocked(root: string): boolean {
  try {
    return statSync(stateDirLayout(root).lock).size > 0;
  } catch {
    return false;
  }
}
