import { expect, test } from "vitest";
import { maintenanceOf } from "../../src/kube/objects.ts";

const node = (parts: object = {}, metadata: object = {}) => ({ metadata: { name: "n1", ...metadata }, ...parts });
const condition = (type: string, status: string) => node({ status: { conditions: [{ type, status }] } });
const taint = (key: string) => node({ spec: { taints: [{ key }] } });
const annotated = (key: string) => node({}, { annotations: { [key]: "" } });

test.each([
  [condition("DrainInProgress", "True"), "the condition DrainInProgress"],
  [condition("MaintenanceInProgress", "True"), "the condition MaintenanceInProgress"],
  [condition("GracefulNodeShutdownInProgress", "True"), "the condition GracefulNodeShutdownInProgress"],
  [annotated("weave.works/kured-reboot-in-progress"), "the annotation weave.works/kured-reboot-in-progress"],
  [taint("medik8s.io/drain"), "the taint medik8s.io/drain"],
  [taint("medik8s.io/remediation"), "the taint medik8s.io/remediation"],
  [taint("remediation.medik8s.io/fence"), "the taint remediation.medik8s.io/fence"],
])("a node is in maintenance: %o", (one, by) => {
  expect(maintenanceOf(one)).toBe(by);
});

test.each([
  node(),
  condition("DrainInProgress", "False"),
  condition("DrainInProgress", "Unknown"),
  condition("Ready", "True"),
  condition("MaintenancePlanned", "True"),
  annotated("weave.works/kured-most-recent-reboot-needed"),
  // A cordoned node may be full, or about to be tested: others may still run on it.
  taint("node.kubernetes.io/unschedulable"),
  taint("example.com/medik8s.io"),
  taint("notmedik8s.io/drain"),
])("a node is not in maintenance: %o", (one) => {
  expect(maintenanceOf(one)).toBeUndefined();
});
