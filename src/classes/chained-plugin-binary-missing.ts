import type { Candidate } from "../evidence/candidates.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import { runtimeReports } from "../evidence/reports.ts";
import { heldUpInWords, incompleteSandboxes } from "../evidence/sandbox-creations.ts";
import { type UnknownId, unknownIds } from "../evidence/unknown-ids.ts";
import type { AboutId, NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { cniContext } from "../logs/context.ts";
import type { CniConfig } from "../node/types/cni.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const chainedPluginBinaryMissing: ClassDefinition = {
  id: "chained-plugin-binary-missing",
  code: "B7",
  sharedCause: true,
  title: "A plugin of the chain has no binary",
  explanation:
    "The network configuration, or the runtime itself (loopback), calls a plugin whose program is not where the runtime searches: the standard plugins were never installed, the network add-on installs them into another directory, a service mesh or SR-IOV add-on was uninstalled, or the k3s data directory changed. Every removal, and every new pod, fails until the two agree again.",
  mechanism:
    "libcni searches the type of each plugin in the bin directories; “failed to find plugin” is not among the texts that go-cni takes for success.",
  signatures: () => [
    {
      text: 'plugin type="<t>" name="<t>" failed (delete): failed to find plugin "<t>" in path [<dirs>]',
      pattern: /failed to find plugin \S{1,80} in path/,
      confidence: 0.95,
    },
    {
      text: 'failed to find plugin "<t>" … (cut)',
      pattern: /failed to find plugi/,
      within: cniContext,
      confidence: 0.8,
    },
    {
      text: "fork/exec /opt/cni/bin/<t>: no such file or directory",
      pattern:
        /fork\/exec \S{0,200}\/(?:cni|bin)\/\S{1,80}: (?:no such file or directory|exec format error|permission denied)/,
      within: cniContext,
      confidence: 0.8,
    },
    {
      text: "netplugin failed with no error message: fork/exec /opt/cni/bin/<t> … (cut)",
      pattern: /no error message: fork\/exec /,
      decides:
        "What follows: “no such file” or “exec format error” is this class; “text file busy” is an installation under way.",
      level: "wrapper",
      confidence: 0.65,
    },
  ],
  logFragments: ["plugin", "cni"],
  inSnapshot: {
    conclusive: true,
    how: "The active conflist names a type that is in none of the bin directories. Where the runtime does not name those (CRI-O), a log has to.",
  },
  versions: {
    since: "every release of any runtime",
    until: "open",
    ends: "No upgrade: install the plugins that the configuration calls. istio 1.29 still removes its binary too early.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "A standard plugin (loopback, bridge, portmap, host-local, bandwidth …): install the CNI plugins of the distribution, or the release archive of containernetworking/plugins, into the first directory that the message lists.",
      "The plugin is on the node, in another directory: make the runtime's bin_dir (bin_dirs from containerd 2.1 on) and the hostPath of the add-on's DaemonSet the same.",
      "The add-on that owns it still exists: restart its DaemonSet pod on this node, which puts the binary back.",
      "A chained add-on was uninstalled on purpose: take its entry out of the conflist. Never do that with loopback, which is in no conflist, or with the main plugin.",
      "Then stop and remove what is left over.",
    ],
    gates: ["The binary is missing from every configured bin directory."],
  },
  byHand: [
    "Compare the directories in the message with those that have plugins: ls /opt/cni/bin /usr/lib/cni /usr/libexec/cni, crictl info | grep -i bindir.",
    "Standard plugin: apt install containernetworking-plugins (or the release archive), and link or copy it into the first directory of the message.",
    "Reinstall the add-on that owns any other one; if a chained one was removed on purpose, remove its entry from the conflist.",
  ],
  danger: "Taking a mesh plugin out of the conflist strips traffic redirection from every pod that starts later.",
  links: [
    "istio/istio#59846",
    "istio/istio.io#16748",
    "k3s-io/k3s#11076",
    "k8snetworkplumbingwg/sriov-network-device-plugin#223",
  ],
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  const conf = valueOr(view.snapshot.cni.conf, undefined);
  if (conf === undefined || view.snapshot.cri.status !== "read") return [];
  const missing = missingPlugins(conf, view);
  if (missing.length === 0) return [];
  const names = missing.map(({ type }) => type).join(", ");
  const halfMade = incompleteSandboxes(candidates, view);
  const leaked = leaksOfBrokenChain(view);
  return [
    {
      severity: "critical",
      steps: stepsFor(
        missing.map(({ type }) => type),
        conf,
      ),
      subject: { type: "node", name: names, path: conf.file },
      summary: `${conf.file} calls ${names}, and no bin directory has an executable of that name: no pod can be set up or torn down`,
      evidence: [
        { source: "cni", fact: `${conf.file} lists ${conf.plugins.map((plugin) => plugin.type).join(", ")}` },
        { source: "cni", fact: `${names} not found in ${conf.binDirs.join(", ")}` },
        ...missing.flatMap(({ evidence }) => evidence),
        ...leaked.map(({ id, about }) => ({ source: "cni", fact: leakInWords(id, about) })),
      ],
      blocks: [
        "every new pod and every removal on this node",
        ...halfMade.map(({ sandbox }) => heldUpInWords(sandbox)),
      ],
      explains: [...halfMade.map(({ sandbox }) => sandbox.id), ...leaked.map(({ id }) => id)],
    },
  ];
}

/**
 * Every attempt to create a pod allocates an address before the missing plugin, and the rollback never releases it. The
 * chain did not complete, so there is no cached result; addresses from before this boot have other causes.
 */
function leaksOfBrokenChain(view: NodeView): readonly UnknownId[] {
  const { boot } = view.snapshot;
  if (boot.status !== "read") return [];
  const started = boot.value.startedAt.getTime();
  return unknownIds(view).filter(
    ({ about }) =>
      about.leases.length > 0 &&
      about.results.length === 0 &&
      about.leases.every(({ modifiedAt }) => modifiedAt.getTime() >= started),
  );
}

function leakInWords(id: string, { leases }: AboutId): string {
  return `${leases.map(({ address }) => address).join(", ")} went to ${id}, whose creation failed, and never came back`;
}

/**
 * Plugins of the chain without a program. CRI-O does not report its search path, and the default path is then a guess:
 * the plugin may be elsewhere, unless a log names the same path as the one that was searched.
 */
function missingPlugins(
  conf: CniConfig,
  view: NodeView,
): readonly { readonly type: string; readonly evidence: readonly Evidence[] }[] {
  const missing = conf.plugins.filter(({ binaryFound }) => !binaryFound).map(({ type }) => type);
  const reportsDirs = valueOr(view.snapshot.cri, undefined)?.cniDirs !== undefined;
  if (reportsDirs || missing.length === 0) return missing.map((type) => ({ type, evidence: [] }));
  const searched = failedSearches(view);
  const known = new Set([...conf.binDirs, conf.multus?.binDir].map((dir) => withoutSlash(dir ?? "")));
  return missing.flatMap((type) => {
    const search = searched.find((one) => one.type === type && one.dirs.every((dir) => known.has(dir)));
    if (search === undefined) return [];
    const fact = `${search.place}: the runtime itself did not find ${type} in ${search.dirs.join(", ")}`;
    return [{ type, evidence: [{ source: "logs", fact }] }];
  });
}

const NOT_FOUND = /failed to find plugin "([^"\\]{1,80})" in path \[([^\]]{1,2000})\]$/;

/** From the end of the runtime's error. */
function failedSearches({ snapshot }: NodeView) {
  return runtimeReports(snapshot).flatMap((report) => {
    const [, type, path] = "error" in report ? (NOT_FOUND.exec(report.error) ?? []) : [];
    if (type === undefined || path === undefined) return [];
    return [{ place: report.line.place, type, dirs: [...new Set(path.split(" ").map(withoutSlash))] }];
  });
}

function withoutSlash(dir: string): string {
  return dir.replace(/\/$/, "");
}

/** In the release archive of containernetworking/plugins. */
const STANDARD = new Set(
  "bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap tuning vlan vrf".split(
    " ",
  ),
);

function stepsFor(missing: readonly string[], { binDirs, file }: CniConfig): readonly string[] {
  const [dir = "the runtime's bin_dir"] = binDirs;
  const { standard = [], foreign = [] } = Object.groupBy(missing, (type) =>
    STANDARD.has(type) ? "standard" : "foreign",
  );
  const steps: string[] = [];
  if (standard.length > 0) {
    steps.push(
      `Install ${standard.join(", ")} into ${dir}: the CNI plugins of the distribution (apt install containernetworking-plugins), or the release archive of containernetworking/plugins.`,
    );
  }
  if (foreign.length > 0) {
    const names = foreign.join(", ");
    steps.push(
      `${names} ${foreign.length === 1 ? "belongs" : "belong"} to a network add-on: restart its DaemonSet pod on this node, which puts the binary into ${dir}.`,
      `Only if that add-on was uninstalled on purpose: take ${names} out of ${file}.`,
    );
  }
  return [...steps, "Then stop and remove what is left over: unghost heal."];
}
