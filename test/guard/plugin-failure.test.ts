import { expect, test } from "vitest";
import { classifyFailure, type FailureKind } from "../../src/guard/plugin-failure.ts";

test.each<[FailureKind, string]>([
  ["daemon-away", "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory"],
  ["daemon-away", 'RPC failed; Post "http://dummy/api/v1/del": dial unix /run/x.sock: connect: connection refused'],
  ["daemon-away", "error getting ClusterInformation: connection is unauthorized: Unauthorized"],
  ["daemon-away", 'Get "https://10.96.0.1:443/api": dial tcp 10.96.0.1:443: i/o timeout'],
  ["daemon-away", "RPC failed; request failed: EOF"],
  ["daemon-away", "Another app is currently holding the xtables lock"],
  ["daemon-away", "unable to connect to Cilium daemon: … Is the agent running?"],
  ["plugin-missing", 'failed to find plugin "istio-cni" in path [/opt/cni/bin]'],
  ["plugin-missing", "executing /opt/cni/bin/x: permission denied"],
  ["state-gone", "Link not found"],
  ["state-gone", 'failed to open netns "/run/netns/cni-1": no such file or directory'],
  ["state-gone", 'opening netns pinned at : open : no such file or directory: stat netns path "": stat : no such file'],
  ["state-gone", "Error deallocating IP: Did not find reserved IP for container abc"],
  ["other", "Invalid Configuration; server_socket is required in cni.conf, {}"],
  ["other", "error reading cached NetConf in /var/lib/cni/sriov with name abc-eth0"],
  ["other", "failed to load /etc/x/config: no such file or directory"],
  ["other", "decoding version from network config: unexpected end of JSON input"],
])("%s: %s", (kind, msg) => {
  const failure = classifyFailure({ how: "exit 1", stdout: JSON.stringify({ code: 100, msg }), stderr: "" });

  expect(failure).toEqual({ kind, words: msg });
});

test.each(["timeout", "signal 9"])("a plugin that ended by %s may answer later", (how) => {
  expect(classifyFailure({ how, stdout: "", stderr: "" })).toEqual({
    kind: "daemon-away",
    words: `no message (${how})`,
  });
});

test("what is not CNI's error JSON is taken as it is", () => {
  expect(classifyFailure({ how: "exit 2", stdout: "", stderr: "panic: boom\n" }).words).toBe("panic: boom");
});
