import { symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../lab/command.ts";
import { clusterOf, fleetRig } from "../fleet/fleet-rig.ts";
import { GUARD_MS, UNGHOST } from "./unghost.ts";

test("the executable under the name kubectl-unghost is kubectl's plugin, and completes its words", async () => {
  const rig = await fleetRig(clusterOf());
  symlinkSync(UNGHOST, join(rig.dir, "kubectl-unghost"));
  const options = { timeoutMs: GUARD_MS, env: { PATH: `${rig.dir}:/usr/bin:/bin` } };

  const scanned = await run(["kubectl-unghost", "scan", `--kubeconfig=${rig.kubeconfig}`, "-o", "name"], options);
  const completed = await run([resolve("deploy/kubectl/kubectl_complete-unghost"), "sc"], options);
  const explained = await run(["kubectl-unghost", "explain", 'name "a_b_c_0" is reserved for "1"'], options);
  const version = await run(["kubectl-unghost", "--version"], options);

  expect(scanned).toMatchObject({ code: 0, stdout: "node/n1\n" });
  expect(completed).toMatchObject({ code: 0, stdout: "scan\n:4\n" });
  expect(explained).toMatchObject({ code: 0, stdout: expect.stringContaining("reserved") });
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
