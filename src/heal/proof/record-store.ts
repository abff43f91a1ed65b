import { copyFile, open } from "node:fs/promises";
import { join } from "node:path";
import { resolveOnHost } from "../../host/paths.ts";
import { describeError } from "../../host/source.ts";
import { type ContainerdClient, openContainerd } from "../../runtime/containerd.ts";
import type { HealContext } from "../journal/journal.ts";

/** containerd without CRI, started over the records because of which it does not start with CRI. */
interface StartedRuntime {
  readonly endpoint: string;
  stop(): Promise<void>;
}

type RuntimeStart =
  | { readonly kind: "borrowed"; readonly runtime: StartedRuntime }
  | { readonly kind: "failed"; readonly reason: string };

type OpenedRecords =
  | { readonly kind: "open"; readonly containerd: ContainerdClient; readonly copy: string; stop(): Promise<void> }
  | { readonly kind: "failed"; readonly reason: string };

/** The records of a runtime that does not start. */
export interface RecordStore {
  /** Copies the database aside, then starts containerd over it. Once, until it is closed. */
  open(context: HealContext): Promise<OpenedRecords>;
  /** Where the last copy of the database is. */
  copy(): string | undefined;
  /** Must be called before the database is read again. */
  close(): Promise<void>;
}

interface StoreOptions {
  /** The database, as a path of the node. */
  readonly path: string;
  readonly start: () => Promise<RuntimeStart>;
}

export function recordStore(options: StoreOptions): RecordStore {
  let opening: Promise<OpenedRecords> | undefined;
  let copy: string | undefined;

  async function openRecords({ stateDir, hostRoot }: HealContext): Promise<OpenedRecords> {
    try {
      const to = join(stateDir.root, `meta.db.${new Date().toISOString().replaceAll(":", "-")}`);
      await copySynced(resolveOnHost(hostRoot, options.path, "follow"), to);
      copy = to;
      const started = await options.start();
      if (started.kind === "failed") return started;
      const { runtime } = started;
      const containerd = openContainerd(runtime.endpoint.replace("unix://", ""));
      return {
        kind: "open",
        containerd,
        copy: to,
        stop: async () => {
          containerd.close();
          await runtime.stop();
        },
      };
    } catch (error) {
      return { kind: "failed", reason: describeError(error) };
    }
  }

  return {
    open: (context) => (opening ??= openRecords(context)),
    copy: () => copy,
    close: async () => {
      const opened = await opening;
      opening = undefined;
      if (opened?.kind === "open") await opened.stop();
    },
  };
}

async function copySynced(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const file = await open(to, "r+");
  try {
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
}
