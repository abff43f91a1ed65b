import { provePath } from "../host/trusted-path.ts";
import type { Doubt, EndpointSources } from "../runtime/configured-endpoint.ts";
import { type Found, findRuntime } from "../runtime/find.ts";
import { endpointOfRunningKubelet } from "./kubelet-process.ts";

/** The node's runtime, at a socket that only root can replace; if several answer, a proven kubelet decides. */
export async function findNodeRuntime(
  where: Omit<EndpointSources, "doubtOf"> & { readonly timeoutMs: number },
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
