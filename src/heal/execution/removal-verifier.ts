import type { Reason } from "../../evidence/finding.ts";
import type { ContainerdClient } from "../../runtime/containerd.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";

/** What the runtime still has of a sandbox that it reported as removed. */
export type RemovalResult = "gone" | "listed" | "recorded";

/** Removes a sandbox and verifies the removal; or returns the reason why it was not removed. */
export type RemovalVerifier = (
  sandboxId: string,
  remove: () => Promise<Reason | undefined>,
) => Promise<RemovalResult | { readonly held: Reason }>;

export interface RemovalSources {
  readonly cri: Pick<CriClient, "listSandboxStates" | "podSandboxState">;
  readonly containerd: Pick<ContainerdClient, "findContainers"> | undefined;
  readonly queryMs: number;
}

/** Long enough for many removals to share one check, too short to matter as a delay. */
const GATHER_MS = 250;

/**
 * RemovePodSandbox answers OK for an unknown id: only a sandbox that is no longer there is removed. A check for each
 * one took a quarter of the time of the removals themselves, so one check serves all that have ended.
 */
export function removalVerifier({ cri, containerd, queryMs }: RemovalSources): RemovalVerifier {
  const call = { timeoutMs: queryMs };
  let underWay = 0;
  let ended: string[] = [];
  let nextCheck: Promise<Left> | undefined;
  let checkNow = (): void => undefined;

  async function check(): Promise<Left> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      checkNow = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    const ids = ended;
    ended = [];
    // A removal that ends from here on may have ended after this check.
    nextCheck = undefined;
    const [listed, recorded] = await Promise.all([
      stillListed(ids, cri, call),
      containerd?.findContainers(ids, call) ?? [],
    ]);
    return { listed, recorded: new Set(recorded.map(({ id }) => id)) };
  }

  return async (sandboxId, remove) => {
    let checking: Promise<Left>;
    underWay += 1;
    try {
      const held = await remove();
      if (held !== undefined) return { held };
      ended.push(sandboxId);
      checking = nextCheck ??= check();
    } finally {
      underWay -= 1;
      if (underWay === 0) checkNow();
    }
    const { listed, recorded } = await checking;
    if (listed.has(sandboxId)) return "listed";
    return recorded.has(sandboxId) ? "recorded" : "gone";
  };
}

interface Left {
  readonly listed: ReadonlySet<string>;
  readonly recorded: ReadonlySet<string>;
}

async function stillListed(
  ids: readonly string[],
  cri: RemovalSources["cri"],
  call: { readonly timeoutMs: number },
): Promise<ReadonlySet<string>> {
  try {
    return new Set((await cri.listSandboxStates(call)).map(({ id }) => id));
  } catch (error) {
    if (!(error instanceof RuntimeError && error.kind === "overflow")) throw error;
    const states = await Promise.all(ids.map(async (id) => [id, await cri.podSandboxState(id, call)] as const));
    return new Set(states.filter(([, state]) => state !== undefined).map(([id]) => id));
  }
}
