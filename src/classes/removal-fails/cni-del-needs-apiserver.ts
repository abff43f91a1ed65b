import { cniContext } from "../../evidence/log-context.ts";
import type { FailureClass } from "../failure-class.ts";

export const cniDelNeedsApiserver: FailureClass = {
  id: "cni-del-needs-apiserver",
  code: "B9",
  category: "removal-fails",
  sharedCause: true,
  title: "The CNI plugin cannot reach the API server",
  explanation:
    "The network plugin needs the Kubernetes API to add or remove a pod, and cannot reach it. After a reboot of the control plane this is a circular dependency: the API's service address needs a network that needs the API. It ends on its own once the API is reachable from the host.",
  mechanism:
    "Calico, multus and others read pods or cluster settings over the service address on ADD and DEL. While kube-proxy or the network itself is down that address leads nowhere.",
  signatures: () => [
    {
      text: 'error getting ClusterInformation: Get "https://<service-ip>:443/…": dial tcp …: i/o timeout | connection refused',
      pattern: /error getting clusterinformation: (?:get|an error|context)/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: 'an error on the server ("") has prevented the request from succeeding (from a plugin)',
      pattern: /an error on the server \([^)]{0,120}\) has prevented the request from succeeding/,
      within: cniContext,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "Multus: [<namespace>/<pod>]: error getting pod: Get … / error waiting for pod: …",
      pattern:
        /error (?:getting|waiting for) pod: (?:get |an error on|the server|context|client rate|timed out|dial|net\/http|etcdserver|service unavailable|internal error|eof)/,
      within: /multus|plugin type=|cmdadd|cmddel|sandbox/,
      unless: /pods? \S{1,300} not found|unauthorized/,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: 'Get "https://<api>/…": dial tcp <api>: i/o timeout | connection refused | no route to host (from a plugin)',
      pattern:
        /dial tcp \S{3,60}: (?:i\/o timeout|connect: |getsockopt: |connection refused|no route to host|operation was canceled|lookup)|net\/http: (?:tls handshake timeout|request canceled)|dial tcp: lookup \S/,
      within: cniContext,
      unless:
        /pull image|sandbox image|127\.0\.0\.1:(?!6443|6444|7445|8443)|runtime service failed: [^]{0,40}unavailable/,
      level: "wrapper",
      confidence: 0.65,
      decides:
        "The address: the API server's or its service address is this class; a port on 127.0.0.1 belongs to a node agent (B13).",
    },
    {
      text: "etcd cluster is unavailable or misconfigured (from a plugin)",
      pattern: /etcd cluster is unavailable|etcdserver: request timed out/,
      within: cniContext,
      level: "wrapper",
      confidence: 0.65,
    },
  ],
  logFragments: ["plugin", "multus", "sandbox", "clusterinformation", "error waiting for pod"],
  inSnapshot: {
    visible: false,
    why: "A snapshot sees whether unghost reaches the API, not whether the plugin does over the service address; the plugin's error in the logs is the proof.",
  },
  versions: "All network add-ons that need the API on DEL.",
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["Wait for the API; the kubelet's own retry then finishes the work."],
    gates: [],
  },
  byHand: [
    "Bring API server and kube-proxy up first: they use the host network and do not need the CNI.",
    "From the node: curl -k https://<service-ip>:443/livez",
    "Once it answers, kubelet removes the pods.",
  ],
  danger: "Forcing removals during the outage leaks every address of the node.",
  links: [
    "https://github.com/containerd/containerd/issues/6565",
    "https://github.com/containerd/cri/issues/732",
    "https://github.com/projectcalico/calico/issues/7220",
  ],
};
