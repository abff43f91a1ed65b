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
]);

const XTABLES = "iptables-portmap";

/** Failures of one cause in a row before no more are tried. */
const ENOUGH = 3;

export interface StormBrake {
  /** Why no further sandbox should be fed to the plugins; undefined while all is well. */
  reason(): string | undefined;
  succeeded(): void;
  /** Takes a failure's text. Says whether the runtime should be given less to do at a time. */
  failed(text: string): { readonly slowDown: boolean };
}

export function stormBrake(): StormBrake {
  let cause: string | undefined;
  let inARow = 0;
  let reason: string | undefined;
  return {
    reason: () => reason,
    succeeded: () => {
      inARow = 0;
    },
    failed: (text) => {
      const [match] = recognise(text);
      const id = match?.class;
      if (id === undefined || !SHARED_CAUSES.has(id)) return { slowDown: id === XTABLES };
      inARow = id === cause ? inARow + 1 : 1;
      cause = id;
      if (inARow >= ENOUGH) {
        const title = classById(id)?.title ?? id;
        reason = `${inARow} removals in a row failed for the same cause (${id}: ${title}); no more are tried until that is repaired: ${text}`;
      }
      return { slowDown: false };
    },
  };
}
