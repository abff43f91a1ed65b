import type { Api } from "../../kube/api.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { refused, type StepResult } from "./step-result.ts";

export interface ApiTools {
  /** Missing if nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
}

/** Executes a step with the Kubernetes API. Without an API, or without its answer, the step is refused. */
export async function withApi(
  { cluster }: ApiTools,
  deadlineMs: number,
  take: (api: Api) => Promise<StepResult>,
): Promise<StepResult> {
  try {
    const api = await cluster?.(deadlineMs);
    if (api === undefined) return refused({ code: "api-missing" });
    try {
      return await take(api);
    } finally {
      api.close();
    }
  } catch (error) {
    if (error instanceof KubeError) return refused({ code: "api-unread", message: error.message });
    throw error;
  }
}
