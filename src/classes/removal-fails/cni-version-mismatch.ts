import type { FailureClass } from "../failure-class.ts";

export const cniVersionMismatch: FailureClass = {
  id: "cni-version-mismatch",
  code: "B18",
  category: "removal-fails",
  sharedCause: true,
  title: "CNI configuration and plugin disagree on the version",
  explanation:
    "The configuration asks for a CNI version that the plugin does not know, or names none at all. Pods may even start, and only their removal fails.",
  mechanism:
    "containerd 1.6 and later validate the version on DEL. An empty cniVersion, or one newer than the plugin, is an error there.",
  signatures: () => [
    {
      text: 'incompatible CNI versions; config is "<v>", plugin supports [<list>]',
      pattern: /incompatible cni versions/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'invalid version "": the version is empty',
      pattern: /invalid version ?: the version is empty/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: 'plugin <t> does not support config version "<v>"',
      pattern: /plugin \S{1,60} does not support config version|unsupported cni result version/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: 'failed to get network "<net>" cached result: failed to convert cached result version …',
      pattern: /failed to convert cached result version/,
      level: "cause",
      confidence: 0.8,
    },
  ],
  logFragments: ["network", "plugin", "version is empty", "config version"],
  inSnapshot: {
    visible: false,
    why: "The version field of the configuration is not judged; the plugin's error in the logs is the proof.",
  },
  versions: "Documented for containerd 1.6 with old or empty cniVersion.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Report the file and the field; change it manually."],
    gates: [],
  },
  byHand: ["Put a cniVersion into the configuration that every plugin of the chain supports, and update old plugins."],
  danger: "The change applies to every pod that starts later.",
  links: ["https://github.com/kubernetes/website/pull/34204", "https://github.com/linkerd/linkerd2/issues/7247"],
};
