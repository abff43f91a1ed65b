/** `make runtime-test`: how each release of containerd behaves, and unghost's stories on each; RUNTIME chooses some. */
import { CONTAINERD_VERSIONS, containerdVersion } from "../lab/runtimes.ts";
import { ensureContainerd } from "../lab/tools.ts";
import { runLabTests } from "./lab-tests.ts";

const chosen = process.env["UNGHOST_LAB_RUNTIME"] ?? "";
const versions = chosen === "" ? CONTAINERD_VERSIONS : chosen.split(",").map(containerdVersion);
process.env["UNGHOST_LAB_RUNTIME"] = versions.join(",");
await runLabTests(
  "runtime-test",
  "runtimes",
  versions.map((version) => () => ensureContainerd(version)),
);
