import { daemonCalls, daemonFinding } from "../../evidence/daemon-finding.ts";
import type { Detected } from "../../evidence/finding.ts";
import { cniContext } from "../../evidence/log-context.ts";
import type { NodeView } from "../../evidence/view.ts";
import type { FailureClass } from "../failure-class.ts";

export const cniDaemonSocketDown: FailureClass = {
  id: "cni-daemon-socket-down",
  code: "B13",
  category: "removal-fails",
  sharedCause: true,
  blocksEveryCall: true,
  title: "The network add-on's node agent is down",
  explanation:
    "The plugin only forwards the request to an agent on the same node, and the agent does not listen: kube-ovn, antrea, aws-node, ovn-kubernetes, weave and others work like that. The fault is the agent's pod, not the sandbox.",
  mechanism:
    "The plugin dials a unix socket or a local port. Under containerd the two answers differ: right after a reboot “no such file or directory” is taken for success and nothing is freed; “connection refused” is not, and loops.",
  signatures: () => [
    {
      text: "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory",
      pattern: /kube-ovn-daemon\.sock|antrea\/cni\.sock|ovn-cni-server\.sock|spiderpool\.sock: connect/,
      unless: /server_socket is required|listen(?:ing)? on/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'RPC failed; Post "http://dummy/api/v1/del": … / failed to send CNI request: Post "http://dummy/": …',
      pattern: /post http:\/\/dummy|rpc failed; (?:post|request)|failed to send cni request/,
      unless: /multus\.sock/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "del cmd: error received from DelNetwork gRPC call: … dial tcp 127.0.0.1:50051: connect: connection refused",
      pattern: /(?:add|del)network grpc call|127\.0\.0\.1:50051/,
      unless: /probe/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "could not remove grpc wire: … 127.0.0.1:51111 …",
      pattern: /could not remove grpc wire|127\.0\.0\.1:51111/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "dial tcp 127.0.0.1:<port>: connect: connection refused (from a plugin)",
      pattern:
        /dial tcp (?:127\.0\.0\.1|\[::1\]|localhost):(?!6443|6444|7445|8443)\d{2,5}: (?:connect: |getsockopt: |i\/o)/,
      within: cniContext,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: "dial unix <agent socket>: connect: connection refused (from a plugin)",
      pattern: /dial unix \S{1,200}: connect: (?:no such file or directory|connection refused|permission denied)/,
      within: cniContext,
      unless: /(?:containerd|crio|docker|dockershim|cri-dockerd|cilium|multus|isulad)\.sock|containerd-shim/,
      level: "wrapper",
      confidence: 0.75,
      decides: "The socket's path names the agent whose pod is down.",
    },
  ],
  logFragments: ["plugin", "grpc", "ovn", "cni", "antrea", "spiderpool", "127.0.0.1:5"],
  inSnapshot: {
    visible: true,
    how: "The CNI configuration names the agent's socket. No process listens on it while kubelet reports that pods fail; or one does, and several plugin calls that started after it wait for it.",
  },
  versions: "Any.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the agent's pod on this node and wait until it is Ready.",
      "Do not end the plugins that wait for it: kubelet's next attempt would hang again.",
      "Kubelet's retry, or a stop over CRI, finishes the rest.",
    ],
    gates: ["After a boot: no removal before the agent's socket exists, or the runtime forgets without freeing."],
  },
  byHand: ["Restart the network add-on's pod on this node; check its log if it does not come up."],
  danger: "Removing sandboxes while the agent is away leaks their addresses.",
  links: [
    "https://github.com/cozystack/cozystack/issues/452",
    "https://github.com/kubeovn/kube-ovn/issues/5836",
    "https://github.com/aws/amazon-vpc-cni-k8s/issues/2487",
    "https://github.com/aws/amazon-vpc-cni-k8s/issues/1590",
    "https://github.com/aws/amazon-vpc-cni-k8s/pull/2350",
    "https://github.com/antrea-io/antrea/issues/1659",
    "https://github.com/antrea-io/antrea/issues/832",
    "https://github.com/projectcalico/calico/issues/7272",
  ],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  return daemonCalls(view).flatMap((one) =>
    // Multus has its own class.
    one.daemon.plugins.includes("multus-shim") ? [] : daemonFinding(one, view),
  );
}
