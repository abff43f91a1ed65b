import { withCorruptFile } from "../../evidence/sandbox-detected.ts";
import { MULTUS } from "../../evidence/versions.ts";
import { valueOr } from "../../host/source.ts";
import type { FailureClass } from "../failure-class.ts";

export const multusCacheCorrupt: FailureClass = {
  id: "multus-cache-corrupt",
  code: "B2",
  category: "removal-fails",
  title: "Corrupt multus cache",
  explanation:
    "A power cut damaged the file in which multus remembers which networks it gave to this pod. Old multus then fails every removal; multus 4 reports success without a DEL of the networks, so their addresses leak.",
  mechanism:
    "multus writes /var/lib/cni/multus/<id> without fsync. Up to 3.9 an unreadable file makes DEL fail forever; from 4.0.0 DEL logs it and returns success before any delegate is called.",
  signatures: () => [
    {
      text: "Multus: failed to load netconf: unexpected end of JSON input",
      pattern: /failed to load netconf: (?:unexpected end|invalid character)/,
      within: /multus/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "failed to load netconf: unexpected end of JSON input (under a DEL, multus not named)",
      pattern: /failed to load netconf: (?:unexpected end|invalid character)/,
      within: /sandbox|network|failed \(delete\)|delegate/,
      level: "cause",
      confidence: 0.7,
    },
    {
      text: "Multus: failed to get the cached delegates file: <nil>, cannot properly delete",
      pattern: /failed to get the cached delegates file: <nil>/,
      level: "cause",
      confidence: 0.9,
    },
  ],
  logFragments: ["multus"],
  inSnapshot: {
    visible: true,
    conclusive: true,
    how: "The multus cache file of a sandbox is empty or is not JSON.",
  },
  versions: "multus up to 3.9.x loops; multus 4.0.0 and later leaks silently.",
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the corrupt file to quarantine.",
      "Stop and remove the sandbox over CRI.",
      "Sweep the addresses its networks had allocated.",
    ],
    gates: ["The file cannot be parsed.", "Its sandbox is dead: NotReady, no container running, no task, no shim."],
  },
  byHand: [
    "Move /var/lib/cni/multus/<id> away.",
    "crictl stopp <id> && crictl rmp <id>",
    "Free the addresses that still carry the id below /var/lib/cni/networks or in whereabouts.",
  ],
  danger:
    "Never write [] or null into the file as a repair: multus would read the first element of an empty list and crash.",
  links: [
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/948",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1087",
  ],
  prevention: () =>
    `multus: releases up to ${MULTUS.corruptCacheFailsUpTo} fail every DEL on a cache that does not parse; later ones succeed without calling the delegates, whose addresses are then to be swept.`,
  detect: (_view, candidates) => withCorruptFile(candidates, ({ multus }) => multus, SUMMARY),
  cacheFiles: ({ multus }) => valueOr(multus, undefined)?.files ?? [],
};

const SUMMARY =
  "multus cannot read which delegates it had called: up to 3.9 every removal fails, from 4.0 on it succeeds without calling them and leaks their addresses";
