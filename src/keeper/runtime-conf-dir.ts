import { fetchRuntimeInfo } from "../node/cri-facts.ts";
import { findNodeRuntime } from "../node/find-runtime.ts";
import { openCri } from "../runtime/cri.ts";

export interface AskedRuntime {
  readonly runtimeEndpoint: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostRoot: string;
  readonly timeoutMs: number;
}

/** The network configuration directory that the runtime reports; undefined while it is unknown. */
export async function runtimeConfDir(asked: AskedRuntime): Promise<string | undefined> {
  const { runtimeEndpoint: endpoint, env, hostRoot, timeoutMs } = asked;
  const found = await findNodeRuntime({ endpoint, env, hostRoot, timeoutMs });
  if (found.kind !== "found") return undefined;
  const cri = openCri(found.path);
  try {
    const runtimeInfo = await fetchRuntimeInfo(cri, { timeoutMs, signal: AbortSignal.timeout(timeoutMs) });
    return runtimeInfo?.cniDirs?.conf;
  } finally {
    cri.close();
  }
}
