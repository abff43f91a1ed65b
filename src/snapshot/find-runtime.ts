import { provePath } from "../host/trusted-path.ts";
import type { Doubt, EndpointSources } from "../runtime/configured-endpoint.ts";
import { type Found, findRuntime } from "../runtime/find.ts";
import { endpointOfRunningKubelet } from "./kubelet-process.ts";

/** The node's runtime, at a socket that is root's, and where several answer by the word of a proven kubelet. */
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
