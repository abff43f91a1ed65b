import { describe, expect, test } from "vitest";
import { redactConfig, redactDeep, redactText } from "../../src/bundle/redact.ts";

const JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg";
const KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nqq==\n-----END RSA PRIVATE KEY-----";

describe("text", () => {
  test.each([
    ["a ServiceAccount's token", `Authorization: Bearer ${JWT}`, JWT],
    ["a token alone", `got ${JWT} back`, JWT],
    ["basic authentication", "header Authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"],
    ["credentials in a URL", "pull from https://robot:hunter2@registry.example/v2/", "hunter2"],
    ["a signed download", "GET https://bucket.example/blob?X-Sig=abc123&Expires=1", "abc123"],
    ["a private key", `cert: ${KEY} end`, "MIIEpAIBAAKCAQEA7"],
    ["half of a private key", "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7", "MIIEpAIBAAKCAQEA7"],
    ["an assignment", "env DB_PASSWORD=hunter2 started", "hunter2"],
    ["a quoted assignment", `--set db.password="hunter 2"`, "hunter 2"],
    ["an option", "etcdctl --password hunter2 get", "hunter2"],
    ["JSON", `{"clientSecret":"hunter2","a":1}`, "hunter2"],
    ["Docker's credentials", `{"auths":{"r.example":{"auth":"aHVudGVyMg=="}}}`, "aHVudGVyMg"],
    ["JSON in JSON", `msg="{\\"password\\":\\"hunter2\\"}"`, "hunter2"],
    ["YAML in a message", "token: k8s-aws-v1.aHR0cHM6Ly9", "aHR0cHM6Ly9"],
    ["a join token of k3s", `--token K10${"a1".repeat(32)}::server:hunter2`, "hunter2"],
    ["a join token of kubeadm", "kubeadm join --token abcdef.0123456789abcdef", "0123456789abcdef"],
    ["a key of a cloud", "credentials AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"],
    ["a word that is only random", "sent wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYabcd1 on", "wJalrXUtnFEMIK7"],
  ])("%s is replaced", (_what, line, secret) => {
    const redacted = redactText(line);

    expect(redacted).not.toContain(secret);
    expect(redacted).toContain("[redacted]");
  });

  test.each([
    `failed to reserve sandbox name "web-0_shop_0b5c8a0e-93a5-4b0e-8c46-d1a6cf0e2a55_0": name is reserved for "${"0a".repeat(32)}"`,
    `StopPodSandbox "${"9f".repeat(32)}" failed: plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized`,
    `open /var/lib/cni/results/cbr0-${"1c".repeat(32)}-eth0: no such file or directory`,
    'MountVolume.SetUp failed for volume "tls" : secret "web-tls" not found',
    "failed to fetch anonymous token: unexpected status from GET request to https://auth.example/token: 403 Forbidden",
    `Pulled image "registry.example/shop/web@sha256:${"ab".repeat(32)}"`,
    "cannot get resource secrets in API group at the cluster scope",
    "/var/lib/kubelet/pods/0b5c8a0e-93a5-4b0e-8c46-d1a6cf0e2a55/volumes/kubernetes.io~projected/kube-api-access-Xy12z",
  ])("what a diagnosis reads stays: %s", (line) => {
    expect(redactText(line)).toBe(line);
  });
});

test.each([
  "a",
  "a-",
  "token",
  '"token',
  "--token ",
  "token: 'a",
  "a://",
  "http://",
  "-eyJaaaaaaaa",
  "-----BEGIN PRIVATE KEY-----",
  "=",
  " ",
  "\\",
])("a line of nothing but %j, made to keep a bundle busy, is read in one pass", (part) => {
  const line = part.repeat(200_000 / part.length);

  // Had a form to be tried from every character to the end of the line, the run would not come back from here.
  expect(redactText(line).length + redactConfig(`key: ${line}`).length).toBeGreaterThan(0);
});

test("a text under the name of a secret is replaced, whatever its form", () => {
  expect(redactDeep({ labels: { "shop/token": "abc", app: "web" } })).toEqual({
    labels: { "shop/token": "[redacted]", app: "web" },
  });
});

test("configuration keeps its structure and loses credentials, whatever its format", () => {
  const toml = `[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]
  username = "robot"
  password = 'hunter2'
  auth = "cm9ib3Q6aHVudGVyMg=="
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"`;
  const yaml = `server: https://10.0.0.1:6443\ntoken: hunter2\nnode-label:\n  - a=b\nagent-token-file: /etc/hunter2`;
  const json = `{\n  "name": "cbr0",\n  "etcd_password": "hunter2",\n  "ipam": {"type": "host-local"}\n}`;

  const redacted = [toml, yaml, json].map(redactConfig);

  for (const text of redacted) expect(text).not.toMatch(/hunter2|cm9ib3Q6|"robot"/);
  expect(redacted[0]).toContain('bin_dir = "/opt/cni/bin"');
  expect(redacted[1]).toContain("server: https://10.0.0.1:6443");
  expect(redacted[2]).toContain('"ipam": {"type": "host-local"}');
});

test("of annotations only those stay that a diagnosis asks for", () => {
  const annotations = {
    "unghost.dev/ignore": "true",
    "kubernetes.io/config.source": "file",
    "kubectl.kubernetes.io/last-applied-configuration": '{"env":[{"name":"DB","value":"hunter2"}]}',
  };

  const redacted = redactDeep({ sandboxes: [{ annotations, at: new Date(0), createdAt: 7n }], ids: new Set(["a"]) });

  expect(redacted).toEqual({
    sandboxes: [
      {
        annotations: { ...annotations, "kubectl.kubernetes.io/last-applied-configuration": "[redacted]" },
        at: new Date(0),
        createdAt: 7n,
      },
    ],
    ids: new Set(["a"]),
  });
});
