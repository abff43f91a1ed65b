import { withCorruptFile } from "../../evidence/sandbox-detected.ts";
import { valueOr } from "../../host/source.ts";
import type { FailureClass } from "../failure-class.ts";

export const delegateScratchCorrupt: FailureClass = {
  id: "delegate-scratch-corrupt",
  code: "B22",
  category: "removal-fails",
  title: "Corrupt flannel scratch file",
  explanation:
    "A power cut emptied the file in which flannel's plugin keeps what it passed on to the bridge plugin. Older versions fail every removal because of it; newer ones report success and leave the address allocated.",
  mechanism: "/var/lib/cni/flannel/<id> is a plain write. DEL reads it to call its delegate and cannot parse it.",
  signatures: () => [
    {
      text: "failed to parse netconf: unexpected end of JSON input",
      pattern: /failed to parse netconf: (?:unexpected end|invalid character)/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "/var/lib/cni/flannel/<id>: … unexpected end of JSON input",
      pattern: /\/var\/lib\/cni\/flannel\/\S{1,80}[^]{0,80}?(?:unexpected end of json|invalid character)/,
      level: "cause",
      confidence: 0.9,
    },
  ],
  logFragments: ["netconf", "cni"],
  inSnapshot: {
    visible: true,
    conclusive: true,
    how: "The flannel scratch file of a sandbox is empty or is not JSON.",
  },
  versions: "Older flannel cni-plugin fails; the current one logs, succeeds and leaks.",
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the corrupt file to quarantine.",
      "Stop and remove the sandbox over CRI.",
      "Sweep the address that stays allocated.",
    ],
    gates: ["The file cannot be parsed.", "Its sandbox is dead: NotReady, no container running, no task, no shim."],
  },
  byHand: [
    "Move /var/lib/cni/flannel/<id> away, crictl rmp <id>.",
    "Free the address: the file below /var/lib/cni/networks that names the id.",
  ],
  danger: "The bridge's address stays allocated unless it is swept.",
  links: [
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1448",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1447",
  ],
  detect: (_view, candidates) => withCorruptFile(candidates, ({ flannel }) => flannel, SUMMARY),
  cacheFiles: ({ flannel }) => valueOr(flannel, []),
};

const SUMMARY =
  "flannel cannot read the network it had delegated to: older plugins fail every removal, newer ones succeed and leak the bridge address";
