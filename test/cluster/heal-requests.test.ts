import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { startControlPlane } from "../../lab/cluster/control-plane.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { until } from "../../lab/poll.ts";
import { ensureTools } from "../../lab/tools.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const deployed = (name: string): string => readFileSync(`deploy/${name}.yaml`, "utf8");
const DIGEST = `sha256:${"a".repeat(64)}`;

const request = (name: string, spec: object) =>
  JSON.stringify({
    apiVersion: "unghost.dev/v1alpha1",
    kind: "GhostHeal",
    metadata: { name },
    spec: { node: "node-a", dryRun: true, ...spec },
  });

test(
  "a request carries the name of the user who makes it, cannot be changed, and is answered once",
  async () => {
    const programs = await ensureClusterTools();
    if (!programs.available) throw new Error(programs.reason);
    const plane = await startControlPlane(await ensureTools(), programs);
    onTestFinished(() => plane.destroy());
    const apply = (text: string) => plane.kubectl(["apply", "-f", "-"], { stdin: text });
    await apply(deployed("helm/unghost/files/crds/ghostheals"));
    await plane.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    await apply(deployed("rbac/healer"));
    await plane.kubectl(["create", "clusterrolebinding", "jane", "--clusterrole=unghost-healer", "--user=jane"]);
    const asJane = (args: readonly string[], stdin = "") =>
      plane.kubectl([...args, "--as=jane"], { stdin }).then(
        () => "",
        (error: unknown) => String(error),
      );
    const create = (name: string, spec: object, ...flags: readonly string[]) =>
      asJane(["create", "-f", "-", ...flags], request(name, spec));
    const askedBy = (name: string) => plane.kubectl(["get", "ghostheal", name, "-o=jsonpath={.spec.requestedBy}"]);

    await apply(deployed("rbac/heal-requests"));
    await until("the policy is in force", WAIT_MS, async () => {
      const refused = await create("probe", { requestedBy: "root" }, "--dry-run=server");
      return refused.includes("spec.requestedBy must be the user who creates the request: jane") ? true : undefined;
    });
    expect(await create("own", { requestedBy: "jane" })).toBe("");
    expect(await create("no-name", {})).toMatch(/requestedBy/);
    expect(await create("no-plan", { requestedBy: "jane", dryRun: false })).toMatch(/planDigest/);
    expect(await create("planned", { requestedBy: "jane", dryRun: false, planDigest: DIGEST })).toBe("");
    expect(await create("odd", { requestedBy: "jane", planDigest: "sha256:x" })).toMatch(/planDigest/);

    await apply(deployed("rbac/stamp-requests"));
    await until("the stamp is in force", WAIT_MS, async () => {
      const refused = await create("probe", { requestedBy: "root" }, "--dry-run=server");
      return refused === "" ? true : undefined;
    });
    expect(await create("claimed", { requestedBy: "root" })).toBe("");
    expect(await create("stamped", {})).toBe("");
    expect([await askedBy("claimed"), await askedBy("stamped")]).toEqual(["jane", "jane"]);

    // Not even by an administrator.
    const patch = (name: string, body: object, ...flags: readonly string[]) =>
      plane.kubectl(["patch", "ghostheal", name, "--type=merge", `-p=${JSON.stringify(body)}`, ...flags]);
    await expect(patch("own", { spec: { node: "node-b" } })).rejects.toThrow(/cannot be changed/);
    await patch("own", { status: { startedAt: "2026-03-01T12:00:00Z" } }, "--subresource=status");
    await patch("own", { status: { outcome: "refused", code: "stale" } }, "--subresource=status");
    await expect(patch("own", { status: { outcome: "healed" } }, "--subresource=status")).rejects.toThrow(/final/);

    // An operator neither answers nor changes requests, but withdraws them.
    const status = ["patch", "ghostheal", "planned", "--subresource=status", "--type=merge"];
    expect(await asJane([...status, '-p={"status":{"outcome":"healed"}}'])).toMatch(/forbidden/);
    expect(await asJane(["delete", "ghostheal", "planned"])).toBe("");
    // The agent's selection.
    const selected = await plane.kubectl(["get", "ghostheals", "--field-selector=spec.node=node-b", "-o=name"]);
    expect(selected).toBe("");
  },
  HANG_GUARD_MS,
);
