/** `make boot-test`: the tests on nodes that a real systemd boots. */
import { ensureClusterTools } from "../lab/cluster/tools.ts";
import { ensureSystemdRootfs } from "../lab/systemd/rootfs.ts";
import { runLabTests } from "./lab-tests.ts";

await runLabTests("boot-test", "systemd", [ensureSystemdRootfs, ensureClusterTools]);
