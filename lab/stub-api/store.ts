import type { ApiObject } from "./api-object.ts";

/** What happened to one object; `before` is missing for a new one, `after` for one that is gone. */
export interface Change {
  readonly version: number;
  readonly path: string;
  readonly before?: ApiObject;
  readonly after?: ApiObject;
}

/** The objects of a cluster by their paths, every change with a version of its own, as etcd keeps them. */
export interface Store {
  version(): number;
  get(path: string): ApiObject | undefined;
  entries(): readonly (readonly [path: string, object: ApiObject])[];
  put(path: string, object: ApiObject): ApiObject;
  remove(path: string): void;
  /** Undefined where that is so long ago that it was forgotten. */
  since(version: number): readonly Change[] | undefined;
  /** Forgets what happened so far: a client with an older version gets 410 Gone. */
  compact(): void;
  onChange(listener: (change: Change) => void): () => void;
}

const MOST_CHANGES = 10_000;

export function openStore(): Store {
  const objects = new Map<string, ApiObject>();
  const listeners = new Set<(change: Change) => void>();
  let changes: Change[] = [];
  // Versions must grow over a restart, too.
  let version = Date.now();
  let forgotten = version;

  function record(change: Change): void {
    changes.push(change);
    if (changes.length > MOST_CHANGES) forgotten = changes.shift()?.version ?? forgotten;
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
