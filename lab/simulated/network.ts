import { isPowerCut, type Script } from "./script.ts";

/** CNI for a sandbox. Both throw an Error with the plugin's text. */
export interface Network {
  add(id: string): string;
  del(id: string): void;
}

/** Generated addresses, for tests that need no files. */
export function memoryNetwork(): Network {
  let last = 1;
  return {
    add: () => {
      last += 1;
      return `10.88.${last >> 8}.${last & 255}`;
    },
    del: () => {},
  };
}

const KILLED = "netplugin failed with no error message: signal: killed";

export async function addNetwork(network: Network, script: Script, id: string, podName: string): Promise<string> {
  if (await script.hung(podName)) throw new Error(`plugin type="bridge" failed (add): ${KILLED}`);
  const refusal = script.faults.addErrors[podName];
  if (refusal !== undefined) throw new Error(refusal);
  return network.add(id);
}

/** The error text of DEL, after go-cni has parsed it. */
export async function delNetwork(
  network: Network,
  script: Script,
  sandbox: { readonly id: string; readonly netnsOpen: boolean },
): Promise<string | undefined> {
  try {
    if (await script.hung(sandbox.id)) return `plugin type="bridge" failed (delete): ${KILLED}`;
    const refusal = script.faults.delErrors[sandbox.id];
    if (refusal !== undefined) throw new Error(refusal);
    network.del(sandbox.id);
    return undefined;
  } catch (error) {
    if (!(error instanceof Error) || isPowerCut(error)) throw error;
    return forgivenByGoCni(error.message, sandbox.netnsOpen) ? undefined : error.message;
  }
}

/** go-cni treats these texts as success, so the same plugin error blocks or passes depending on the namespace. */
function forgivenByGoCni(text: string, netnsOpen: boolean): boolean {
  return text.includes("not found") || (!netnsOpen && text.includes("no such file or directory"));
}
