import { openCri } from "../runtime/cri.ts";
import { fetchRuntimeInfo } from "../snapshot/cri-facts.ts";
import { findNodeRuntime } from "../snapshot/find-runtime.ts";

export interface AskedRuntime {
  readonly runtimeEndpoint: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostRoot: string;
  readonly timeoutMs: number;
}

/** The directory from which the runtime in use reports to read its networks; undefined while it is unknown. */
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
