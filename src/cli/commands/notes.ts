/** Usage and examples of a command, beside its flags. */
export interface CommandNotes {
  readonly group: "Find and heal" | "Run unattended" | "Review" | "Set up";
  readonly summary: string;
  /** The arguments of its usage line, if the parameters do not show them. */
  readonly usage?: string;
  /** A command line and what it is for. */
  readonly examples: readonly (readonly [command: string, purpose: string])[];
  readonly exits: string;
}

const USAGE = "64 wrong usage";

const NOTES: Readonly<Record<string, CommandNotes>> = {
  scan: {
    group: "Find and heal",
    summary: "Find ghosts and leaks on this node; changes nothing",
    examples: [
      ["unghost scan", "what is wrong on this node"],
      ["unghost scan shop/web-0", "one pod, with the evidence"],
      ["unghost scan -o json | jq -r '.findings[].class'", "for scripts"],
      ["unghost scan --from node.tar.gz", "the scan in a bundle, on any machine"],
    ],
    exits: `0 healthy, 1 findings or failures, 2 unknown, ${USAGE}`,
  },
  heal: {
    group: "Find and heal",
    summary: "Heal what is proven stuck: shows the plan, asks, heals, verifies",
    examples: [
      ["unghost heal --dry-run", "the plan; changes nothing"],
      ["unghost heal shop/web-0", "one pod only"],
      ["unghost heal --yes", "without a question, for scripts"],
    ],
    exits: `0 nothing left, 1 something left, 2 unknown, 3 refused, ${USAGE}`,
  },
  explain: {
    group: "Find and heal",
    summary: "Explain an error line or a failure class; needs no node",
    examples: [
      ["unghost explain 'failed to reserve sandbox name ...'", "an error line"],
      ["journalctl -u containerd | unghost explain -", "a whole log"],
      ["unghost explain --list", "every failure class"],
    ],
    exits: `0 recognised, 1 not recognised, ${USAGE}`,
  },
  fleet: {
    group: "Find and heal",
    summary:
      "The whole cluster from an operator's machine, by what the agents report; as a kubectl plugin: kubectl unghost",
    usage: "scan [NODE]... | why [NAMESPACE/]POD",
    examples: [
      ["unghost fleet scan", "every node, the worst first"],
      ["kubectl unghost scan -l pool=edge", "nodes with a label"],
      ["kubectl unghost why shop/web-0", "why a pod does not start, or does not end"],
      ["kubectl unghost doctor", "whether unghost works in the cluster, and what puts nodes at risk"],
      ["unghost fleet scan edge-07 -o json", "for scripts"],
    ],
    exits: `0 nothing is wrong, 1 findings or a cause, 2 something is unknown, ${USAGE}`,
  },
  boot: {
    group: "Run unattended",
    summary: "Heal once per boot, before or right after the runtime starts",
    examples: [
      ["unghost boot", "before the runtime starts, as the boot hook runs it"],
      ["unghost boot --after", "once the runtime is up"],
      ["unghost boot --dry-run", "what it would do; changes nothing"],
      ["unghost boot --after --force --strict", "again in this boot, with an exit code"],
    ],
    exits: `0 always; with --strict 1 something left, 2 could not be done; ${USAGE}`,
  },
  agent: {
    group: "Run unattended",
    summary: "Run as a daemon: watch this node and heal ghosts as they appear",
    examples: [
      ["unghost agent", "with the settings of the configuration file"],
      ["unghost agent --config /etc/unghost/config.yaml", "with another file"],
      ["unghost config -o yaml", "the settings that it would use"],
    ],
    exits: `0 stopped, 3 another agent runs on this node, ${USAGE}`,
  },
  keep: {
    group: "Run unattended",
    summary: "Run as a daemon: sync files of CNI plugins to disk as they are written",
    examples: [
      ["unghost keep", "until stopped"],
      ["unghost keep --once", "what changed in the last minute"],
      ["unghost keep -v", "with each file"],
    ],
    exits: `0 stopped, 1 with --once: something could not be synced, ${USAGE}`,
  },
  history: {
    group: "Review",
    summary: "Show what unghost changed on this node",
    examples: [
      ["unghost history", "everything, newest last"],
      ["unghost history --limit 10", "the last 10 entries"],
      ["unghost history ID", "one entry whole, or all that one run did and why"],
    ],
    exits: `0 shown, 2 the journal cannot be read, ${USAGE}`,
  },
  undo: {
    group: "Review",
    summary: "Put back a file that was moved to quarantine",
    examples: [
      ["unghost history", "which entries can be undone"],
      ["unghost undo ID", "one of them"],
      ["unghost undo --last", "the newest one"],
    ],
    exits: `0 put back, 1 failed, 3 refused, ${USAGE}`,
  },
  quarantine: {
    group: "Review",
    summary: "List or delete files and logs that healing moved to quarantine",
    usage: "[list | prune [ID]...]",
    examples: [
      ["unghost quarantine list", "what is there, and for how long"],
      ["unghost quarantine prune --older-than 7d", "asks, then deletes for good"],
      ["unghost quarantine prune ID --yes", "one entry, without a question"],
    ],
    exits: `0 done, 1 something could not be deleted, 2 cannot be read, 3 refused, ${USAGE}`,
  },
  bundle: {
    group: "Review",
    summary: "Write one archive of what a report needs, without secrets; unghost scan --from reads it",
    examples: [
      ["unghost bundle", "into a file here"],
      ["unghost bundle - > node.tar.gz", "to standard output, for example from a pod"],
      ["unghost scan --from node.tar.gz", "the same scan, on another machine"],
    ],
    exits: `0 written, 2 could not be written, ${USAGE}`,
  },
  doctor: {
    group: "Set up",
    summary: "Show what unghost can read and do here, and why not",
    examples: [
      ["unghost doctor", "on a node"],
      ["unghost doctor --host-root /host", "in a container"],
      ["unghost doctor --before reboot", "what a reboot would not survive; also runtime, cni"],
      ["unghost doctor -o json", "for scripts"],
    ],
    exits: `0 everything, 1 something is missing, with --before: 0 survives, 1 does not, 2 unknown, ${USAGE}`,
  },
  config: {
    group: "Set up",
    summary: "Show the effective configuration and where each value comes from",
    examples: [
      ["unghost config", "as YAML"],
      ["unghost config --check --config FILE", "validate a file"],
      ["unghost config -o json", "for scripts"],
    ],
    exits: `0 valid, ${USAGE} or an invalid configuration`,
  },
  install: {
    group: "Set up",
    summary: "Install the boot hook for the distribution found",
    examples: [
      ["unghost install --dry-run", "what would be written"],
      ["unghost install", "asks first"],
      ["unghost install --yes -- --no-kube", "with arguments for the hook"],
    ],
    exits: `0 installed, 1 incomplete, 3 refused, ${USAGE}`,
  },
  uninstall: {
    group: "Set up",
    summary: "Remove the boot hook, and the agent's condition from the node",
    examples: [
      ["unghost uninstall --dry-run", "what would be removed"],
      ["unghost uninstall", "asks first"],
      ["unghost uninstall --purge --yes", "journal and quarantine, too"],
    ],
    exits: `0 removed, 1 incomplete, 3 refused, ${USAGE}`,
  },
  cni: {
    group: "Set up",
    summary: "The CNI guard: install, status, uninstall",
    usage: "install|status|uninstall",
    examples: [
      ["unghost cni install --dry-run", "what would be changed"],
      ["unghost cni install --restart", "asks, installs, asks, restarts the runtime"],
      ["unghost cni status", "what the runtime would run for each network"],
      ["unghost cni uninstall", "asks first"],
    ],
    exits: `0 done, or guarded; 1 incomplete, or not in effect; 2 unknown; 3 refused; ${USAGE}`,
  },
  withdraw: {
    group: "Set up",
    summary: "Remove node conditions and leases that agents left in the cluster",
    examples: [
      ["unghost withdraw", "after the last agent is gone"],
      ["unghost withdraw --namespace unghost", "of agents in that namespace"],
      ["unghost withdraw --kubeconfig FILE", "with other credentials"],
    ],
    exits: `0 removed, 1 something is left, ${USAGE}`,
  },
  completion: {
    group: "Set up",
    summary: "Print a completion script for bash, zsh or fish",
    examples: [
      ["source <(unghost completion bash)", "bash, in this shell"],
      ["unghost completion zsh > ~/.zfunc/_unghost", "zsh"],
      ["unghost completion fish > ~/.config/fish/completions/unghost.fish", "fish"],
    ],
    exits: `0 printed, ${USAGE}`,
  },
  version: {
    group: "Set up",
    summary: "Show version, commit, engine and platform",
    examples: [
      ["unghost version", "in a line"],
      ["unghost version -o json", "for scripts"],
      ["unghost --version", "the number alone"],
    ],
    exits: `0 shown, ${USAGE}`,
  },
  help: {
    group: "Set up",
    summary: "Show help for a command",
    examples: [
      ["unghost help", "all commands"],
      ["unghost help heal", "one command"],
      ["unghost heal --help", "the same"],
    ],
    exits: `0 shown, ${USAGE}`,
  },
};

export const COMMAND_NOTES: ReadonlyMap<string, CommandNotes> = new Map(Object.entries(NOTES));
