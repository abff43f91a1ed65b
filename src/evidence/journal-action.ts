import * as v from "valibot";

/** Device numbers, inodes and nanoseconds exceed a double, so they are written as decimal strings. */
const decimal = v.pipe(
  v.string(),
  v.regex(/^-?\d{1,20}$/),
  v.transform((text) => BigInt(text)),
);
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
export const absolutePath = v.pipe(v.string(), v.startsWith("/"));

/** A file before it was moved: enough to identify it and to restore it. */
export const fileState = v.object({
  dev: decimal,
  inode: decimal,
  size: decimal,
  mtimeNs: decimal,
  atimeNs: decimal,
  mode: count,
  uid: count,
  gid: count,
  sha256,
});
export type FileState = v.InferOutput<typeof fileState>;

export interface Words<Action> {
  /** What it was done to, in a cell of the history. `pod`: the pod of the finding, as `namespace/name`. */
  on(action: Action, pod: string | undefined): string;
  /** What it did, on the status page. */
  did(action: Action): string;
}

/** A change as the journal announces it, with the previous state if it is needed for undo, and its words. Paths are the host's. */
export function journalAction<const Kind extends string, Fields extends v.ObjectEntries>(
  kind: Kind,
  fields: Fields,
  words: Words<v.InferOutput<v.ObjectSchema<{ readonly kind: v.LiteralSchema<Kind, undefined> } & Fields, undefined>>>,
) {
  return { kind, schema: v.object({ kind: v.literal(kind), ...fields }), ...words };
}

/** The pod is the most familiar name of a sandbox. */
export function onSandbox({ sandboxId }: { readonly sandboxId: string }, pod: string | undefined): string {
  const id = sandboxId.slice(0, 13);
  return pod === undefined ? id : `${pod} ${id}`;
}

export function onPath({ path }: { readonly path: string }): string {
  return path;
}
