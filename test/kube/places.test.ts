import { expect, test } from "vitest";
import { findCredentials, SERVICE_ACCOUNT } from "../../src/kube/places.ts";

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
  { title: "nothing is nothing", found: undefined },
  {
    title: "what was asked for comes first, there or not",
    kubeconfig: "/k",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    found: { kind: "kubeconfig", path: "/k" },
  },
  {
    title: "then what the pod was given",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    found: { kind: "service-account", host: "10.96.0.1", port: "6443" },
  },
  {
    title: "a pod that was given no ServiceAccount has the one named default, and kubelet's own come first",
    env: IN_POD,
    own: [TOKEN],
    host: [KUBELET],
    account: "system:serviceaccount:shop:default",
    found: { kind: "kubelet", path: KUBELET },
  },
  {
    title: "the ServiceAccount named default is better than nothing",
    env: IN_POD,
    own: [TOKEN],
    account: "system:serviceaccount:shop:default",
    found: { kind: "service-account", host: "10.96.0.1", port: "6443" },
  },
  {
    title: "a pod without a token has nothing to show",
    env: IN_POD,
    host: [KUBELET],
    found: { kind: "kubelet", path: KUBELET },
  },
  { title: "a token outside a pod leads nowhere", own: [TOKEN], found: undefined },
  { title: "then what kubelet itself uses", host: [KUBELET], found: { kind: "kubelet", path: KUBELET } },
  { title: "kubelet's is searched on the host, not here", own: [KUBELET], found: undefined },
  { title: "KUBECONFIG may be another cluster's", env: { KUBECONFIG: "/k" }, own: ["/k"], found: undefined },
])("$title", ({ kubeconfig, env = {}, own = [], host = [], account = "system:serviceaccount:a:b", found }) => {
  const isThere = (path: string): boolean => own.includes(path);
  const isOnHost = (path: string): boolean => host.includes(path);
  const claims = Buffer.from(JSON.stringify({ sub: account })).toString("base64url");
  const read = (): string => `header.${claims}.signature`;

  expect(findCredentials({ kubeconfig, env, isThere, isOnHost, read })).toEqual(found);
});
