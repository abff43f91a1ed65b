import { fullIdsIn } from "../snapshot/ids.ts";
import { valueOr } from "../snapshot/source.ts";
import { blockingResults, isBroken } from "./corrupt-files.ts";
import type { AboutId, NodeView } from "./view.ts";

const REMOVAL_FAILED = /failed to (?:destroy network|stop|remove|tear)|(?:stop|remove)podsandbox\b.{0,120}\bfailed/i;

/**
 * Tells of a sandbox whether its removal is known to fail: a log says that it has, or a file that it has to read cannot
 * be read. In a storm of retries a plugin is at work on such a sandbox at almost any moment, and never with success.
 */
export function failedBefore(view: NodeView): (id: string, about: AboutId) => boolean {
  let named: ReadonlySet<string> | undefined;
  return (id, about) => {
    const notes = [about.multus, about.flannel].filter((file) => file !== undefined);
    if (blockingResults(about.results, view).length > 0 || notes.some(isBroken)) return true;
    named ??= namedAsFailed(view);
    return named.has(id);
  };
}

function namedAsFailed({ snapshot }: NodeView): ReadonlySet<string> {
  const lines = valueOr(snapshot.logs, undefined)?.lines ?? [];
  const failures = lines.filter(({ text }) => REMOVAL_FAILED.test(text));
  return new Set(failures.flatMap(({ text }) => fullIdsIn(text)));
}
