import { expect, test } from "vitest";
import type { ReadText } from "../../src/kube/access.ts";
import { inClusterAccess } from "../../src/kube/cluster.ts";
import { SERVICE_ACCOUNT } from "../../src/kube/kubeconfig.ts";

const files: Readonly<Record<string, string>> = {
  [`${SERVICE_ACCOUNT}/token`]: "abc\n",
  [`${SERVICE_ACCOUNT}/ca.crt`]: "PEM",
};
const readText: ReadText = (path) => {
  const text = files[path];
  return text === undefined ? { kind: "missing" } : { kind: "text", text };
};

test.each([
  ["10.96.0.1", "https://10.96.0.1"],
  ["fd00::1", "https://[fd00::1]"],
  ["kubernetes.default.svc", "https://kubernetes.default.svc"],
])("uses the API server %s in a pod", (host, origin) => {
  expect(inClusterAccess(host, "443", readText)).toMatchObject({
    server: new URL(origin),
    token: "abc",
    tls: { ca: "PEM", insecure: false },
  });
});

test("reports an invalid port", () => {
  expect(() => inClusterAccess("10.96.0.1", "tcp://x", readText)).toThrow(/make no address/);
});

test("names a missing file", () => {
  expect(() => inClusterAccess("10.96.0.1", "443", () => ({ kind: "missing" }))).toThrow(/ca\.crt is missing/);
});
