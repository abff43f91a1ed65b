import { expect, test } from "vitest";
import { oneShotCluster, waiting } from "./one-shot-cluster.ts";
import { grantedBy, permissionOf } from "./permissions.ts";

test("unghost-one-shot grants what scan --without-agents asks for besides the viewer's, and nothing else", async () => {
  const scanned = await oneShotCluster({});
  const failed = await oneShotCluster({ statuses: [waiting("ErrImagePull")] });
  await scanned.fleet("scan", "--without-agents");
  await failed.fleet("scan", "--without-agents");

  const asked = [...scanned.server.asked, ...failed.server.asked].map(permissionOf);
  // The viewer lists pods of all namespaces, and this role those of its own.
  const inNamespace = (permission: string) => !grantedBy("viewer").includes(permission) || permission === "/pods list";
  expect([...new Set(asked)].filter(inNamespace).toSorted()).toEqual(grantedBy("one-shot").toSorted());
});
