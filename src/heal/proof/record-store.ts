import { copyFile, open } from "node:fs/promises";
import { join } from "node:path";
import { resolveOnHost } from "../../host/paths.ts";
import { describeError } from "../../host/source.ts";
import { type ContainerdClient, openContainerd } from "../../runtime/containerd.ts";
import type { HealContext } from "../journal/journal.ts";

/** containerd without CRI, started over the records because of which it does not start with CRI. */
type RuntimeStart =
  | { readonly kind: "borrowed"; readonly runtime: { readonly endpoint: string; stop(): Promise<void> } }
  | { readonly kind: "failed"; readonly reason: string };

type OpenedRecords =
  | { readonly kind: "open"; readonly containerd: ContainerdClient; readonly copy: string; stop(): Promise<void> }
  | { readonly kind: "failed"; readonly reason: string };

export type RecordStore = ReturnType<typeof recordStore>;

/** The records of a runtime that does not start. `path`: the database, as a path of the node. */
export function recordStore({ path, start }: { readonly path: string; readonly start: () => Promise<RuntimeStart> }) {
  let opening: Promise<OpenedRecords> | undefined;
  let copy: string | undefined;

  async function openRecords({ stateDir, hostRoot }: HealContext): Promise<OpenedRecords> {
    try {
      const to = join(stateDir.root, `meta.db.${new Date().toISOString().replaceAll(":", "-")}`);
      await copySynced(resolveOnHost(hostRoot, path, "follow"), to);
      copy = to;
      const started = await start();
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
    /** Copies the database aside, then starts containerd over it. Once, until it is closed. */
    open: (context: HealContext) => (opening ??= openRecords(context)),
    /** Where the last copy of the database is. */
    copy: () => copy,
    /** Must be called before the database is read again. */
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
