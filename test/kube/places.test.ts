import { expect, test } from "vitest";
import { findCredentials, SERVICE_ACCOUNT } from "../../src/kube/kubeconfig.ts";

const IN_POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "6443" };
const TOKEN = `${SERVICE_ACCOUNT}/token`;
const KUBELET = "/var/lib/rancher/k3s/agent/kubelet.kubeconfig";

interface Case {
  readonly title: string;
  readonly kubeconfig?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly own?: readonly string[];
  readonly host?: readonly string[];
  readonly account?: string;
  readonly found: unknown;
}

test.each<Case>([
  { title: "no credentials without any source", found: undefined },
  {
    title: "the requested one comes first, existing or not",
    kubeconfig: "/k",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    found: { kind: "kubeconfig", path: "/k" },
  },
  {
    title: "then the ServiceAccount of the pod",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    found: { kind: "service-account", host: "10.96.0.1", port: "6443" },
  },
  {
    title: "kubelet's come before the ServiceAccount named default, for a pod without its own",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    account: "system:serviceaccount:shop:default",
    found: { kind: "kubelet", path: KUBELET },
  },
  {
    title: "the ServiceAccount named default is the last resort",
    env: IN_POD,
    own: [TOKEN],
    account: "system:serviceaccount:shop:default",
    found: { kind: "service-account", host: "10.96.0.1", port: "6443" },
  },
  {
    title: "a pod without a token has no credentials",
    env: IN_POD,
    host: [KUBELET],
    found: { kind: "kubelet", path: KUBELET },
  },
  { title: "a token outside a pod is not used", own: [TOKEN], found: undefined },
  { title: "then kubelet's own", host: [KUBELET], found: { kind: "kubelet", path: KUBELET } },
  { title: "kubelet's are searched on the host, not in the container", own: [KUBELET], found: undefined },
  { title: "KUBECONFIG may be for another cluster", env: { KUBECONFIG: "/k" }, own: ["/k"], found: undefined },
])("$title", ({ kubeconfig, env = {}, own = [], host = [], account = "system:serviceaccount:a:b", found }) => {
  const isThere = (path: string): boolean => own.includes(path);
  const isOnHost = (path: string): boolean => host.includes(path);
  const claims = Buffer.from(JSON.stringify({ sub: account })).toString("base64url");
  const read = (): string => `header.${claims}.signature`;

  expect(findCredentials({ kubeconfig, env, isThere, isOnHost, read })).toEqual(found);
});
