import { expect, test } from "vitest";
import { hostRootFrom, type RootFacts } from "../../src/host/paths.ts";

type Identity = ReturnType<RootFacts["identity"]>;

const NODE_AT_HOST: Readonly<Record<string, Identity>> = { "/": "1:1", "/host": "2:2", "/host/proc/1/root": "2:2" };

const POD: RootFacts = {
  isPod: true,
  identity: (path) => NODE_AT_HOST[path] ?? "missing",
  isProcfs: (path) => path === "/host/proc",
};

const facts = (identities: Readonly<Record<string, Identity>>, more: Partial<RootFacts> = {}): RootFacts => ({
  ...POD,
  identity: (path) => identities[path] ?? POD.identity(path),
  ...more,
});

test.each<[string, RootFacts, string]>([
  ["a pod with the node at /host", POD, "/host"],
  ["a container without Kubernetes' environment", facts({}, { isPod: false }), "/host"],
  ["a pod that may not read process 1's root", facts({ "/host/proc/1/root": "denied" }), "/host"],
  ["a host where /host is unreadable", facts({ "/host/proc/1/root": "denied" }, { isPod: false }), "/"],
  ["a host without /host", facts({ "/host": "missing" }), "/"],
  ["a host with a rescue system at /host, including procfs", facts({ "/host/proc/1/root": "1:1" }), "/"],
  ["/host is the root directory itself", facts({ "/host": "1:1" }), "/"],
  ["/host has no procfs", facts({}, { isProcfs: () => false }), "/"],
])("%s", (_, seen, root) => {
  expect(hostRootFrom(seen)).toBe(root);
});
