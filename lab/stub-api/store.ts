import type { ApiObject } from "./api-object.ts";

/** The change of one object; `before` is missing for a new one, `after` for a deleted one. */
export interface Change {
  readonly version: number;
  readonly path: string;
  readonly before?: ApiObject;
  readonly after?: ApiObject;
}

/** The objects of a cluster by their paths, each change with its own version, like in etcd. */
export interface Store {
  version(): number;
  get(path: string): ApiObject | undefined;
  entries(): readonly (readonly [path: string, object: ApiObject])[];
  put(path: string, object: ApiObject): ApiObject;
  remove(path: string): void;
  /** Undefined if that version was compacted. */
  since(version: number): readonly Change[] | undefined;
  /** Drops the history: a client with an older version gets 410 Gone. */
  compact(): void;
  onChange(listener: (change: Change) => void): () => void;
}

const MAX_CHANGES = 10_000;

export function openStore(): Store {
  const objects = new Map<string, ApiObject>();
  const listeners = new Set<(change: Change) => void>();
  let changes: Change[] = [];
  // Versions must also grow over a restart.
  let version = Date.now();
  let forgotten = version;

  function record(change: Change): void {
    changes.push(change);
    if (changes.length > MAX_CHANGES) forgotten = changes.shift()?.version ?? forgotten;
    for (const listener of listeners) listener(change);
  }

  return {
    version: () => version,
    get: (path) => objects.get(path),
    entries: () => [...objects].toSorted(([one], [other]) => (one < other ? -1 : 1)),
    put: (path, object) => {
      version += 1;
      const before = objects.get(path);
      const after = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
      objects.set(path, after);
      record({ version, path, after, ...(before === undefined ? {} : { before }) });
      return after;
    },
    remove: (path) => {
      const before = objects.get(path);
      if (before === undefined) return;
      version += 1;
      objects.delete(path);
      record({ version, path, before });
    },
    since: (from) => (from < forgotten ? undefined : changes.filter((change) => change.version > from)),
    compact: () => {
      changes = [];
      version += 1;
      forgotten = version;
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
