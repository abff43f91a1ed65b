import { CNI_GUARD_STATE_DIR } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, fileText, statsOf } from "../host/safe-fs.ts";
import { parseJson, printable, stringIn } from "../host/text.ts";
import type { GuardQueue } from "./types/cni.ts";

const QUEUE_DIR = `${CNI_GUARD_STATE_DIR}/queue`;

/** The DELs that the CNI guard has still to repeat; undefined if there are none, or no guard. */
export function readGuardQueue(root: string): GuardQueue | undefined {
  const dir = resolveOnHost(root, QUEUE_DIR, "keep");
  const waiting = entriesIn(dir).filter(({ name, kind }) => kind === "file" && !name.startsWith("."));
  const [oldest] = waiting
    .flatMap(({ name }) => {
      const changed = statsOf(`${dir}/${name}`)?.mtime.getTime();
      const [sandboxId = "", interfaceName = "", plugin = ""] = name.split("@").map(printable);
      const queued = parseJson(fileText(`${dir}/${name}`));
      const queuedAt = Date.parse(stringIn(queued, "queuedAt") ?? "");
      const since = new Date(Number.isNaN(queuedAt) ? (changed ?? Number.NaN) : queuedAt);
      const words = printable(stringIn(queued, "words") ?? "");
      return Number.isNaN(since.getTime()) ? [] : [{ sandboxId, interface: interfaceName, plugin, since, words }];
    })
    .toSorted((one, other) => one.since.getTime() - other.since.getTime());
  return waiting.length === 0 || oldest === undefined ? undefined : { waiting: waiting.length, oldest };
}
