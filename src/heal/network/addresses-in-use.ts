import { mapLimited } from "../../host/map-limited.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { Waits } from "../execution/waits.ts";

export interface ReadyAddressTools {
  readonly cri: Pick<CriClient, "listPodSandbox" | "podSandboxStatus">;
  readonly waits: Pick<Waits, "queryMs">;
}

/** Addresses of running pods, which must not be released, whatever an old record contains. */
export async function addressesOfReadyPods(tools: ReadyAddressTools): Promise<ReadonlySet<string>> {
  const call = { timeoutMs: tools.waits.queryMs };
  const ready = await tools.cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_READY } }, call);
  const statuses = await mapLimited(ready, 8, ({ id }) => tools.cri.podSandboxStatus(id, call));
  return new Set(
    statuses.flatMap(({ status }) => [
      status?.network?.ip ?? "",
      ...(status?.network?.additionalIps ?? []).map(({ ip }) => ip),
    ]),
  );
}
