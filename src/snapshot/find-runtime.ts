import { type Found, findRuntime } from "../runtime/find.ts";
import type { Doubt, Sayings } from "../runtime/said-endpoint.ts";
import { endpointOfRunningKubelet } from "./kubelet-process.ts";
import { provePath } from "./trusted-path.ts";

/** The node's runtime, at a socket that is root's, and where several answer by the word of a proven kubelet. */
export async function findNodeRuntime(
  where: Omit<Sayings, "doubtOf"> & { readonly timeoutMs: number },
): Promise<Found> {
  const { hostRoot, timeoutMs } = where;
  return await findRuntime({
    ...where,
    doubtOf: (path, inHost) => doubtOf(inHost ? hostRoot : "/", path),
    runningKubelet: () => endpointOfRunningKubelet(hostRoot, AbortSignal.timeout(timeoutMs)),
  });
}

function doubtOf(root: string, path: string): Doubt | undefined {
  const trust = provePath(root, path);
  return trust.kind === "refused" ? trust : undefined;
}
