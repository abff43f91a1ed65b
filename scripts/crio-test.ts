/** `make crio-test`: the tests on a real CRI-O. */
import { ensureClusterTools } from "../lab/cluster/tools.ts";
import { ensureCrio } from "../lab/crio.ts";
import { runLabTests } from "./lab-tests.ts";

await runLabTests("crio-test", "crio", [ensureCrio, ensureClusterTools]);
