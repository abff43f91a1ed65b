/** `make cluster-test`: the stories on a real control plane and kubelet. */
import { ensureClusterTools } from "../lab/cluster/tools.ts";
import { KUBERNETES } from "../lab/runtimes.ts";
import { runLabTests } from "./lab-tests.ts";

await runLabTests(
  "cluster-test",
  "cluster",
  KUBERNETES.map((version) => () => ensureClusterTools(version)),
);
