/** `make cluster-test`: the stories on a real control plane and kubelet. */
import { ensureClusterTools } from "../lab/cluster/tools.ts";
import { runLabTests } from "./lab-tests.ts";

await runLabTests("cluster-test", "cluster", [ensureClusterTools]);
