import type { Logger } from "pino";
import { GUARD_PROGRAM, GUARD_STATE_DIR } from "../guard/home.ts";
import { failureOf, runChild } from "../host/child.ts";
import { resolveOnHost } from "../host/paths.ts";
import { statsOf } from "../host/safe-fs.ts";
import { onHostCommand, systemCallEnv } from "../host/system-call.ts";
import { provePath } from "../host/trusted-path.ts";

const EVERY_MS = 15_000;
const TIMEOUT_MS = 300_000;

interface GuardBeside {
  readonly hostRoot: string;
  readonly log: Pick<Logger, "warn">;
  /** False while the agent only observes. */
  readonly mayAct: () => boolean;
}

/**
 * Beside the agent: the guard's own program on the host repeats queued DELs and gives new plugins an entry. On the host,
 * because the plugins need the host's files. Stopping the agent changes nothing of the guard.
 */
export function keepGuardBeside({ hostRoot, log, mayAct }: GuardBeside): { stop(): void } {
  const stopped = new AbortController();
  let isRunning = false;
  async function keep(): Promise<void> {
    if (!mayAct() || statsOf(resolveOnHost(hostRoot, GUARD_PROGRAM, "keep")) === undefined) return;
    const trust = provePath(hostRoot, GUARD_PROGRAM);
    if (trust.kind === "refused") log.warn({ code: "cni-guard-untrusted", reason: trust.detail }, "CNI guard not used");
    if (trust.kind !== "trusted") return;
    const command = [GUARD_PROGRAM, "cni-call", "keep", GUARD_STATE_DIR];
    const result = await runChild(hostRoot === "/" ? command : onHostCommand(hostRoot, command), {
      env: systemCallEnv(),
      timeoutMs: TIMEOUT_MS,
      signal: stopped.signal,
    });
    const failure = stopped.signal.aborted ? undefined : failureOf(result);
    if (failure !== undefined)
      log.warn({ code: "cni-guard-keep", reason: `${failure} ${result.stderr.trim()}` }, "CNI guard not kept in step");
  }
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    void keep().finally(() => {
      isRunning = false;
    });
  }, EVERY_MS);
  return {
    stop: () => {
      clearInterval(timer);
      stopped.abort();
    },
  };
}
