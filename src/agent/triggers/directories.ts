import { watchDirectories as watchFiles } from "../../keeper/directory-watch.ts";
import type { OnHint } from "./trigger.ts";

/** File notifications on directories that may not be there yet, and may be made again. */
export interface DirectoryWatch {
  /** Watches the directories that exist now. Cheap: called after every scan. */
  refresh(paths: readonly string[]): void;
  close(): void;
}

/** A directory that cannot be watched hints at nothing: the slow scan serves. */
export function watchDirectories(onHint: OnHint): DirectoryWatch {
  const watch = watchFiles((dir) => onHint({ from: `files in ${dir}`, urgency: "soon" }));
  return {
    refresh: (paths) => {
      watch.refresh(paths);
    },
    close: () => watch.close(),
  };
}
