import { classById } from "../classes/index.ts";
import { recognise } from "../explain/recognise.ts";

/**
 * Classes whose cause lies outside the sandbox: while an agent, a daemon or the API is down, every DEL fails alike, and
 * each further try only feeds the storm.
 */
const SHARED_CAUSES = new Set([
  "multus-daemon-down-or-wedged",
  "cni-not-initialized",
  "chained-plugin-binary-missing",
  "calico-unauthorized",
  "cni-del-needs-apiserver",
  "calico-nodename-missing",
  "cilium-agent-down",
  "cni-daemon-socket-down",
  "cni-version-mismatch",
  "iptables-portmap",
]);

/** A lock that others hold for moments, or a network namespace that somebody else's stop has just unmounted: worth a retry. */
const CONTENTION = /xtables lock|iptables: resource temporarily unavailable|unknown fs magic on/i;

export function isContention(text: string): boolean {
  return CONTENTION.test(text);
}

/** The class that says why others fail alike; undefined where the failure is this sandbox' own. */
export function sharedCause(text: string): string | undefined {
  const id = recognise(text)[0]?.class;
  return id !== undefined && SHARED_CAUSES.has(id) ? id : undefined;
}

/** Failures of one cause in a row before no more are tried. */
const ENOUGH = 3;
/** Each of these has hung for as long as kubelet waits; whatever is fed next most likely hangs as well. */
const ENOUGH_UNANSWERED = 16;

export interface StormBrake {
  /** Why no further sandbox should be fed to the plugins; undefined while all is well. */
  reason(): string | undefined;
  succeeded(): void;
  /** Takes the runtime's own words; none at all when it did not answer in time. */
  failed(text: string): void;
  /** So many wait for an answer and none has succeeded: no further one is made. Gives the reason. */
  unanswered(count: number): string;
}

export function stormBrake(): StormBrake {
  let cause: string | undefined;
  let inARow = 0;
  let reason: string | undefined;

  function count(of: string): number {
    inARow = of === cause ? inARow + 1 : 1;
    cause = of;
    return inARow;
  }

  return {
    reason: () => reason,
    unanswered: (waiting) => {
      reason ??= silent(waiting);
      return reason;
    },
    succeeded: () => {
      inARow = 0;
    },
    failed: (text) => {
      if (text === "") {
        if (count("no answer") >= ENOUGH_UNANSWERED) reason = unanswered(inARow);
        return;
      }
      if (isContention(text)) return;
      const id = sharedCause(text);
      if (id !== undefined && count(id) >= ENOUGH) reason = unrepaired(inARow, id, text);
    },
  };
}

function unrepaired(times: number, id: string, text: string): string {
  const title = classById(id)?.title ?? id;
  return `${times} removals in a row failed for the same cause (${id}: ${title}); no more are tried until that is repaired: ${innermost(text)}`;
}

/** What the plugin itself said, without the runtime's words around it: those name one sandbox, and this is about all. */
function innermost(text: string): string {
  return text.split(/failed \((?:add|delete)\): /).at(-1) ?? text;
}

function silent(count: number): string {
  return `the first ${count} removals have no answer, and none has succeeded; no more are tried. A network plugin or its daemon hangs: unghost scan names it. Repair that, then heal again`;
}

function unanswered(times: number): string {
  return `${times} removals in a row were not answered in time; no more are tried. Most likely a network plugin hangs: see unghost scan, and the log of the network add-on's pod on this node`;
}
