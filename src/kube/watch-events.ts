import * as v from "valibot";
import { KubeError } from "./kube-error.ts";

/** One line of a watch. Of a bookmark only the resourceVersion is used; the object of an error is a Status. */
export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: unknown;
}

const WatchEventSchema = v.object({
  type: v.picklist(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
  object: v.unknown(),
});

/** etcd accepts no object above 1.5 MB, so a JSON line is always shorter than this. */
const LONGEST_LINE = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Splits lines as bytes, because a chunk may end within a character. */
export async function* watchEvents(
  chunks: AsyncIterable<Buffer>,
  longestLine: number = LONGEST_LINE,
): AsyncGenerator<WatchEvent> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      pieces.push(chunk.subarray(from, end));
      const line = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      size = 0;
      from = end + 1;
      if (line.trim() !== "") yield parse(line);
    }
    pieces.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > longestLine) throw new KubeError("unreadable", `the watch sent a line longer than ${longestLine} bytes`);
  }
}

function parse(line: string): WatchEvent {
  try {
    const event = v.safeParse(WatchEventSchema, JSON.parse(line));
    if (event.success) return event.output;
  } catch {
    // Not JSON: reported below, like any other invalid line.
  }
  throw new KubeError("unreadable", "the watch sent a line that is no event");
}
