/** One way to break what a story in the lab is about. Every test of the story that is selected has to fail with it. */
export interface StoryMutant {
  /** The story's test file. */
  readonly story: string;
  /** Selects tests of that file by name; default all of them. */
  readonly tests?: string;
  /** What does not work any more. */
  readonly broken: string;
  readonly edits: readonly Edit[];
}

/** Replaces a text that occurs exactly once in the file. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const CLASSES = "src/classes";

const tornResultsUnseen: Edit = {
  file: `${CLASSES}/corrupt-caches.ts`,
  from: "blockingResults(candidate.about.results, view)",
  to: "blockingResults([], view)",
};

const noRecovery: Edit = {
  file: "src/evidence/candidates.ts",
  from: "if (kubelet === undefined || podPresence",
  to: "if (kubelet !== null || podPresence",
};

const noCreationDue: Edit = {
  file: `${CLASSES}/sandbox-name-held-by-inflight-run.ts`,
  from: ".filter((creation) => isCreationDue(creation, view))",
  to: ".filter(() => false)",
};

const crioLostEndOrderly: Edit = {
  file: "src/evidence/ending.ts",
  from: "const CRIO_LOST_EXIT_CODE = -1;",
  to: "const CRIO_LOST_EXIT_CODE = -2;",
};

const filesOfRunningPodsOrphaned: readonly Edit[] = [
  {
    file: `${CLASSES}/cni-cache-files-orphaned.ts`,
    from: "return unknownIds(view).flatMap(({ id, about }) => {",
    to: "return view.sandboxes.flatMap(({ id }) => {\n    const about = view.about(id);",
  },
  {
    file: `${CLASSES}/cni-cache-files-orphaned.ts`,
    from: "if (first === undefined || about.leases.length > 0)",
    to: "if (first === undefined)",
  },
  {
    file: "src/heal/steps/files.ts",
    from: "return reference === undefined ? undefined",
    to: "return reference !== undefined ? undefined",
  },
];

/** For `make story-mutation`. Each story has at least one. */
export const STORY_MUTANTS: readonly StoryMutant[] = [
  {
    story: "test/cluster/power-cut.test.ts",
    tests: "containerd 1.6",
    broken: "torn CNI results are not seen",
    edits: [tornResultsUnseen],
  },
  {
    story: "test/cluster/power-cut.test.ts",
    tests: "containerd 2.3",
    broken: "kubelet gets no time to restart its pods, and sandboxes are removed with their containers",
    edits: [noRecovery, { file: "src/plan/ladder.ts", from: "if (facts.allDead)", to: "if (facts.kubeletAlive)" }],
  },
  {
    story: "test/cluster/csi-chain.test.ts",
    tests: "after a power cut",
    broken: "a ghost is not connected with the CSI driver that it blocks",
    edits: [{ file: "src/diagnose/csi-chain.ts", from: "if (chains.size === 0)", to: "if (chains.size >= 0)" }],
  },
  {
    story: "test/cluster/csi-chain.test.ts",
    tests: "three ghosts at once",
    broken: "a pod that crashed without the driver is never restarted",
    edits: [{ file: "src/heal/steps/pods.ts", from: "if (!isStuck)", to: "if (step.uid !== undefined)" }],
  },
  {
    story: "test/cluster/csi-chain.test.ts",
    tests: "agent at power-on",
    broken: "torn CNI results are not seen",
    edits: [tornResultsUnseen],
  },
  {
    story: "test/cluster/csi-plugin-add-hangs.test.ts",
    broken: "kubelet's report that a creation timed out is ignored",
    edits: [
      {
        file: "src/evidence/sandbox-creations.ts",
        from: "const abandonedAt = Math.min(...reported);",
        to: "const abandonedAt = reported.length < 0 ? 0 : Number.POSITIVE_INFINITY;",
      },
    ],
  },
  {
    story: "test/cluster/volume-attachment-stuck.test.ts",
    tests: "cannot be detached",
    broken: "an attachment that is being deleted counts as settled",
    edits: [
      {
        file: "src/kube/attachments.ts",
        from: "  return !attached || deletedAt !== undefined;",
        to: "  return !attached && deletedAt === undefined;",
      },
    ],
  },
  {
    story: "test/cluster/volume-attachment-stuck.test.ts",
    tests: "left alone",
    broken: "an attachment that is not attached counts as settled",
    edits: [
      {
        file: "src/kube/attachments.ts",
        from: "  return !attached || deletedAt !== undefined;",
        to: "  return attached && deletedAt !== undefined;",
      },
    ],
  },
  {
    story: "test/cluster/volume-situations.test.ts",
    broken: "volumes that only another node has are not searched",
    edits: [{ file: "src/kube/unattached-volumes.ts", from: "waiting.size === 0 ?", to: "waiting.size >= 0 ?" }],
  },
  {
    story: "test/cluster/pods-blocked.test.ts",
    broken: "there is no event about blocked pods",
    edits: [{ file: "src/agent/state-changes.ts", from: "(isBlocked(report) &&", to: "(isBlocked(undefined) &&" }],
  },
  {
    story: "test/cluster/thin-multus-power-cut.test.ts",
    broken: "multus gets no marker, so its DEL fails forever",
    edits: [{ file: "src/heal/steps/files.ts", from: "if (!canUseMarker(tools))", to: "if (tools.conf !== null)" }],
  },
  {
    story: "test/cluster/multus-daemon-restart.test.ts",
    broken: "the daemon's container is not stopped",
    edits: [
      {
        file: "src/heal/steps/pods.ts",
        from: "await tools.cri.stopContainer(containerId, GRACE_SECONDS, { timeoutMs: tools.waits.actMs });",
        to: "",
      },
    ],
  },
  {
    story: "test/cluster/multus-daemon-restart.test.ts",
    tests: "an explicit heal",
    broken: "the daemon is restarted without consent",
    edits: [{ file: `${CLASSES}/multus-daemon-down-or-wedged.ts`, from: 'mode: "attended"', to: 'mode: "automatic"' }],
  },
  {
    story: "test/cluster/multus-daemon-wedged.test.ts",
    broken: "a hung daemon is seen only while a shim waits for it",
    edits: [
      {
        file: `${CLASSES}/multus-daemon-down-or-wedged.ts`,
        from: 'if (process?.isStopped === true) return "wedged";',
        to: "",
      },
    ],
  },
  {
    story: "test/cluster/delegate-daemon-hangs.test.ts",
    broken: "daemons of network plugins are not checked",
    edits: [
      {
        file: `${CLASSES}/cni-daemon-socket-down.ts`,
        from: 'includes("multus-shim") ? []',
        to: 'includes("") || one.daemon ? []',
      },
    ],
  },
  {
    story: "test/cluster/cni-lock-wedge.test.ts",
    broken: "the holders of the CNI lock are not ended",
    edits: [{ file: "src/heal/steps/processes.ts", from: "mapLimited(step.holders,", to: "mapLimited([]," }],
  },
  { story: "test/cluster/held-name.test.ts", broken: "no creation in flight is ever due", edits: [noCreationDue] },
  {
    story: "test/cluster/api-gone.test.ts",
    broken: "kubelet's directories are not read",
    edits: [
      {
        file: "src/node/kubelet-dirs.ts",
        from: "const kubeletRoot of where.kubeletRoots)",
        to: "const kubeletRoot of where.kubeletRoots.slice(0, 0))",
      },
    ],
  },
  {
    story: "test/cluster/clock-step.test.ts",
    broken: "the age of a process is taken from the wall clock",
    edits: [
      {
        file: "src/node/processes.ts",
        from: "ageSeconds: Math.max(0, uptimeSeconds - startedSecondsAfterBoot)",
        to: 'ageSeconds: Math.abs(Date.now() / 1000 - Number(/btime (\\d+)/.exec(process.getBuiltinModule("node:fs").readFileSync("/proc/stat", "utf8"))[1]) - startedSecondsAfterBoot)',
      },
    ],
  },
  {
    story: "test/cluster/clock-step.test.ts",
    tests: "forward by 40 days",
    broken: "quarantine entries are deleted by their date alone",
    edits: [
      {
        file: "src/agent/quarantine-retention.ts",
        from: "if (record.boot === own.boot && isBootYoung) return true;",
        to: "if (record.boot !== undefined || isBootYoung) return false;",
      },
    ],
  },
  {
    story: "test/cluster/disk-full.test.ts",
    broken: "a full disk is neither checked for nor recognised in an error",
    edits: [
      {
        file: "src/heal/state/durable-files.ts",
        from: "  try {\n    const stats",
        to: "  try {\n    if (needed) return ok(undefined);\n    const stats",
      },
      {
        file: "src/heal/state/durable-files.ts",
        from: 'return code === "ENOSPC" || code === "EDQUOT" ?',
        to: 'return code === "EDQUOT" ?',
      },
    ],
  },
  {
    story: "test/cluster/kubectl-printers.test.ts",
    tests: "custom-columns",
    broken: "custom columns have other widths than kubectl's",
    edits: [{ file: "src/fleet/output.ts", from: "const PADDING = 3;", to: "const PADDING = 2;" }],
  },
  {
    story: "test/cluster/stub-api.test.ts",
    tests: "replaced only with its latest version|patches of a node",
    broken: "the stub replaces objects whatever their version",
    edits: [
      {
        file: "lab/stub-api/write-object.ts",
        from: "if (resourceVersion && resourceVersion !== before.metadata.resourceVersion)",
        to: "if (resourceVersion === address.path)",
      },
    ],
  },
  {
    story: "test/cluster/stub-api.test.ts",
    tests: "expired version",
    broken: "the stub never forgets a version",
    edits: [{ file: "lab/stub-api/store.ts", from: "from < forgotten ?", to: "from < 0 ?" }],
  },
  {
    story: "test/cluster/stub-api.test.ts",
    tests: "a watch reports|ends at the timeout|with bookmarks",
    broken: "the stub's watch has only objects that match before and after",
    edits: [
      {
        file: "lab/stub-api/watch-objects.ts",
        from: 'return [was ? "MODIFIED" : "ADDED", after];',
        to: 'return was ? ["MODIFIED", after] : [];',
      },
    ],
  },
  {
    story: "test/cluster/stub-api.test.ts",
    tests: "refused alike|namespace of its object|paginated",
    broken: "the stub accepts wrong tokens and namespaces, and counts too few objects",
    edits: [
      {
        file: "lab/stub-api/list-objects.ts",
        from: "remainingItemCount: count }",
        to: "remainingItemCount: count - 1 }",
      },
      { file: "lab/stub-api/write-object.ts", from: '? about["namespace"] === namespace', to: "? true" },
      { file: "lab/stub-api/list-objects.ts", from: "if (token === undefined)", to: "if (token === null)" },
    ],
  },
  {
    story: "test/cluster/terminating-pods.test.ts",
    tests: "torn CNI cache",
    broken: "torn CNI results are not seen",
    edits: [tornResultsUnseen],
  },
  {
    story: "test/cluster/terminating-pods.test.ts",
    tests: "plugin fails DEL",
    broken: "kubelet's reports of failed removals are ignored",
    edits: [
      {
        file: "src/evidence/reports.ts",
        from: 'if (report.operation !== "remove" || report.by',
        to: 'if (report.operation === "remove" || report.by',
      },
    ],
  },
  {
    story: "test/cluster/killed-in-the-middle.test.ts",
    broken: "sandboxes are not removed",
    edits: [
      {
        file: "src/heal/steps/sandboxes.ts",
        from: "await cri.removePodSandbox(sandboxId, { timeoutMs: waits.actMs, signal: interruption.giveUp });",
        to: "",
      },
    ],
  },
  {
    story: "test/cluster/churn.test.ts",
    broken: "a creation in flight has no grace period",
    edits: [
      {
        file: "src/evidence/sandbox-creations.ts",
        from: "return creationDueAt(creation, view) <= view.snapshot.observedAt.getTime();",
        to: "return creationDueAt(creation, view) > 0;",
      },
    ],
  },
  {
    story: "test/cluster/helm.test.ts",
    tests: "agents of the default chart",
    broken: "an uninstall leaves the nodes' conditions",
    edits: [
      {
        file: "src/agent/kube/withdraw.ts",
        from: "for (const node of nodes) await deleteConditions(api, node);",
        to: "",
      },
    ],
  },
  {
    story: "test/cluster/helm.test.ts",
    tests: "helm 3 and 4 accept|kustomize builds",
    broken: "the chart and deploy/kubernetes differ",
    edits: [
      { file: "deploy/helm/unghost/templates/_pod.tpl", from: "hostPID: true", to: "hostPID: false" },
      { file: "deploy/kubernetes/kustomization.yaml", from: "resources:", to: "namePrefix: other-\nresources:" },
    ],
  },
  {
    story: "test/cluster/helm.test.ts",
    tests: "helm refuses|each alert",
    broken: "the chart has no schema, and its alerts cannot be disabled",
    edits: [
      {
        file: "deploy/helm/unghost/templates/prometheusrule.yaml",
        from: '(has ($rule.alert | default "") $disabled)',
        to: "false",
      },
      {
        file: "deploy/helm/unghost/values.schema.json",
        from: '"additionalProperties": false,\n  "required": ["image", "mode", "distribution"],\n  "properties": {',
        to: '"required": ["image", "mode", "distribution"],\n  "unused": {',
      },
    ],
  },
  {
    story: "test/cluster/agent-privileges.test.ts",
    tests: "hostPID",
    broken: "signals are sent into another PID namespace",
    edits: [
      {
        file: "src/node/machine.ts",
        from: '  const proc = hostPath(root, "/proc");\n',
        to: '  const proc = hostPath(root, "/proc");\n  if (proc) return { kind: "own" };\n',
      },
    ],
  },
  {
    story: "test/cluster/agent-privileges.test.ts",
    tests: "nothing with everything",
    broken: "the chart does not grant SYS_CHROOT",
    edits: [{ file: "deploy/helm/unghost/templates/_pod.tpl", from: "          - SYS_CHROOT\n", to: "" }],
  },
  {
    story: "test/cluster/agent-privileges.test.ts",
    tests: "DAC_READ_SEARCH|SYS_PTRACE",
    broken: "processes that may not be read count as read",
    edits: [
      { file: "src/node/processes.ts", from: "code: PERMISSION_DENIED }", to: 'code: "other" }' },
      {
        file: "src/node/processes.ts",
        from: "return denied.length * 2 > all.length ||",
        to: "return denied.length > all.length &&",
      },
    ],
  },
  {
    story: "test/cluster/agent-pod-starts.test.ts",
    broken: "the agent's pod needs a network of its own",
    edits: [
      { file: "deploy/helm/unghost/templates/_pod.tpl", from: "hostNetwork: true", to: "hostNetwork: false" },
      { file: "deploy/helm/unghost/templates/_pod.tpl", from: "--listen=127.0.0.1:", to: "--listen=0.0.0.0:" },
    ],
  },
  {
    story: "test/cluster/debug-node.test.ts",
    tests: "scan finds a ghost",
    broken: "the node's root directory at /host is not found",
    edits: [{ file: "src/host/paths.ts", from: "return isNode ? MOUNTED_AT", to: "return !isNode ? MOUNTED_AT" }],
  },
  {
    story: "test/cluster/debug-node.test.ts",
    tests: "without --profile=sysadmin",
    broken: "processes that may not be read count as read",
    edits: [
      {
        file: "src/node/processes.ts",
        from: "return denied.length * 2 > all.length ||",
        to: "return denied.length > all.length &&",
      },
    ],
  },
  {
    story: "test/cluster/debug-node.test.ts",
    tests: "Talos' paths",
    broken: "Talos' kubeconfig is not known",
    edits: [{ file: "src/host/distributions.ts", from: "kubeconfig-kubelet", to: "kubelet.conf" }],
  },
  {
    story: "test/cluster/fleet.test.ts",
    tests: "why names the cause in situations",
    broken: "messages of kubelet mean nothing",
    edits: [
      {
        file: "src/fleet/why/message.ts",
        from: "const answers = answersIn(message);",
        to: 'const answers = answersIn("");',
      },
    ],
  },
  {
    story: "test/cluster/fleet-doctor.test.ts",
    broken: "doctor takes an admission policy without a binding for one that is in force",
    edits: [{ file: "src/fleet/doctor/facts.ts", from: "isBound: bound.has(name)", to: "isBound: true" }],
  },
  {
    story: "test/cluster/fleet-scale.test.ts",
    broken: "a scan of the fleet leaves a node out",
    edits: [
      { file: "src/fleet/scan-report.ts", from: "return nodes.toSorted(", to: "return nodes.slice(1).toSorted(" },
    ],
  },
  {
    story: "test/cluster/own-node-only.test.ts",
    broken: "the policy lets an agent touch pods of other nodes",
    edits: [
      {
        file: "deploy/rbac/own-node-only.yaml",
        from: "&& has(oldObject.spec.nodeName) && oldObject.spec.nodeName == variables.node)",
        to: "&& variables.node != '')",
      },
    ],
  },
  {
    story: "test/cluster/heal-requests.test.ts",
    broken: "the name in a request to heal is believed",
    edits: [
      {
        file: "deploy/rbac/heal-requests.yaml",
        from: "object.spec.requestedBy == request.userInfo.username",
        to: "object.spec.requestedBy != ''",
      },
    ],
  },
  {
    story: "test/cluster/fleet-heal.test.ts",
    broken: "the agent heals whatever plan the request names",
    edits: [
      {
        file: "src/agent/requests/answer.ts",
        from: "if (shown === planDigest(plan)) return undefined;",
        to: "if (shown !== undefined) return undefined;",
      },
    ],
  },
  {
    story: "test/cluster/two-nodes.test.ts",
    tests: "a pod that moved",
    broken: "torn CNI results are not moved away",
    edits: [
      tornResultsUnseen,
      { file: "src/plan/obstacles.ts", from: ".filter(isBroken)", to: ".filter(() => false)" },
    ],
  },
  {
    story: "test/cluster/two-nodes.test.ts",
    tests: "with one slot",
    broken: "a disruptive heal needs no slot",
    edits: [
      { file: "src/agent/limits/gate.ts", from: "if (disruptive.length === 0 ||", to: "if (disruptive.length >= 0 ||" },
    ],
  },
  {
    story: "test/cluster/two-nodes.test.ts",
    tests: "both nodes turn unhealthy",
    broken: "the breaker never opens",
    edits: [
      { file: "src/agent/limits/breaker.ts", from: "if (!isImplausible(1)) return", to: "if (!before.open) return" },
    ],
  },
  {
    story: "test/systemd/outlived-plugin.test.ts",
    tests: "an ADD that hung",
    broken: "a plugin of an earlier runtime counts as one of the current runtime",
    edits: [
      {
        file: "src/evidence/outlived-plugins.ts",
        from: "if (plugin.startedSecondsAfterBoot >= process.startedSecondsAfterBoot) return false;",
        to: "if (process.pid !== 0) return false;",
      },
    ],
  },
  {
    story: "test/systemd/stopped-agent.test.ts",
    tests: "an agent that was stopped",
    broken: "nothing starts the agent with the machine",
    edits: [{ file: "src/boot/install/units.ts", from: "Wants=${AGENT_UNIT}", to: "" }],
  },
  {
    story: "test/systemd/power-cut.test.ts",
    tests: "the hook heals torn caches",
    broken: "the hook does not run before the runtime, and the step after the start fails",
    edits: [
      {
        file: "src/boot/install/units.ts",
        from: '[...(before === "own-unit" ? [BEFORE_UNIT] : []), AFTER_UNIT]',
        to: "[AFTER_UNIT]",
      },
      { file: "src/boot/install/units.ts", from: "embeddedHookCommand(settings)", to: '"true"' },
      { file: "src/boot/install/hook.ts", from: '["--after"]', to: '["--no-such-flag"]' },
    ],
  },
  {
    story: "test/systemd/power-cut.test.ts",
    tests: "a hook that hangs",
    broken: "a hook that hangs has no time limit",
    edits: [
      {
        file: "src/boot/install/units.ts",
        from: "TimeoutStartSec=${settings.deadlineSeconds + GRACE_SECONDS}s",
        to: "TimeoutStartSec=infinity",
      },
      {
        file: "src/boot/install/hook.ts",
        from: 'return ["timeout", "-k", String(KILL_SECONDS), String(seconds), ...',
        to: "return [...",
      },
    ],
  },
  {
    story: "test/systemd/power-cut.test.ts",
    tests: "a hook that (crashes|is not executable|is gone)",
    broken: "the runtime requires its hook",
    edits: [
      { file: "src/boot/install/units.ts", from: "\nWants=${[...wanted", to: "\nRequires=${[...wanted" },
      { file: "src/boot/install/units.ts", from: "ExecStartPre=-", to: "ExecStartPre=" },
      {
        file: "src/boot/install/units.ts",
        from: '${condition(settings)}\nRequiresMountsFor=${["/var/lib/cni", ...data',
        to: 'RequiresMountsFor=${["/var/lib/cni", ...data',
      },
    ],
  },
  {
    story: "test/systemd/service.test.ts",
    tests: "containerd\\).*does not touch running pods",
    broken: "every pod counts as dead when the runtime's service starts",
    edits: [
      { file: "src/boot/way.ts", from: "if (sameBoot !== undefined)", to: "if (sameBoot === null)" },
      {
        file: "src/evidence/liveness.ts",
        from: 'if (first !== undefined) return { state: "alive"',
        to: 'if (first === null) return { state: "alive"',
      },
      { file: "src/evidence/candidates.ts", from: "if (cri.isReady) continue;", to: "" },
      noRecovery,
    ],
  },
  {
    story: "test/systemd/service.test.ts",
    tests: "k3s\\).*does not touch running pods",
    broken: "the drop-in lets a restart of the service end its pods",
    edits: [
      { file: "src/boot/install/units.ts", from: "ExecStartPre=-", to: "KillMode=control-group\nExecStartPre=-" },
    ],
  },
  {
    story: "test/systemd/service.test.ts",
    tests: "is replaced by an upgrade",
    broken: "an uninstall leaves the unit of the step after the start",
    edits: [
      {
        file: "src/boot/install/plan.ts",
        from: "...ours.filter((path) => !withReceipt.includes(path)), ...withReceipt]",
        to: "...ours.filter((path) => !withReceipt.includes(path))]",
      },
    ],
  },
  {
    story: "test/systemd/service.test.ts",
    tests: "an agent follows journald",
    broken: "lines in the journal cause no scan",
    edits: [
      {
        file: "src/agent/triggers/journald.ts",
        from: 'onHint({ from: "lines in the journal", urgency: "soon" });',
        to: "",
      },
    ],
  },
  {
    story: "test/systemd/explain-journal.test.ts",
    broken: "lines of every unit are read",
    edits: [{ file: "src/cli/journald.ts", from: 'UNITS.flatMap((unit) => ["-u", unit])', to: "UNITS.slice(0, 0)" }],
  },
  {
    story: "test/systemd/shutdown.test.ts",
    broken: "the agent ignores SIGTERM",
    edits: [
      {
        file: "src/cli/commands/agent.ts",
        from: '["SIGINT", "SIGTERM"]);',
        to: '["SIGINT"]);\n  process.on("SIGTERM", () => undefined);',
      },
    ],
  },
  {
    story: "test/crio/kubelet.test.ts",
    tests: "after a power cut",
    broken: "cache files of running pods count as orphaned",
    edits: filesOfRunningPodsOrphaned,
  },
  {
    story: "test/crio/kubelet.test.ts",
    tests: "after crio was killed",
    broken: "an end that CRI-O did not see counts as orderly",
    edits: [crioLostEndOrderly],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "scan reports running and finished pods",
    broken: "cache files of running pods count as orphaned",
    edits: filesOfRunningPodsOrphaned,
  },
  {
    story: "test/crio/node.test.ts",
    tests: "while crio is down|scan and boot wait for that",
    broken: "a node whose runtime does not answer is healthy",
    edits: [{ file: "src/diagnose/verdict.ts", from: "[snapshot.boot, snapshot.cri, ", to: "[snapshot.boot, " }],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "died with a killed crio",
    broken: "an end that CRI-O did not see counts as orderly",
    edits: [crioLostEndOrderly],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "hung creation",
    broken: "no creation in flight is ever due",
    edits: [noCreationDue],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "leaked in a stop",
    broken: "leaked addresses are not found",
    edits: [
      {
        file: `${CLASSES}/hostlocal-leases.ts`,
        from: "const [first] = about.leases;",
        to: "const [first] = about.leases.slice(0, 0);",
      },
    ],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "half removed$",
    broken: "a sandbox of CRI-O is removed without a stop",
    edits: [
      {
        file: "src/heal/steps/sandboxes.ts",
        from: "if (containerd === undefined) await stopFirst",
        to: "if (containerd === null) await stopFirst",
      },
    ],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "explain knows CRI-O's answer",
    broken: "explain does not know the message",
    edits: [
      { file: `${CLASSES}/other-runtimes.ts`, from: "from index: no such id/", to: "from the index: no such id/" },
    ],
  },
  {
    story: "test/crio/node.test.ts",
    tests: "without crio wipe",
    broken: "finished pods are not kept",
    edits: [{ file: "src/evidence/candidates.ts", from: "if (endedInOrder(about)) {", to: "if (false) {" }],
  },
  {
    story: "test/cluster/documented-commands.test.ts",
    broken: "withdraw knows no administrator's kubeconfig",
    edits: [
      {
        file: "src/cli/commands/withdraw.ts",
        from: "const { kubeconfig = ofAdministrator(io), hostRoot }",
        to: "const { kubeconfig, hostRoot }",
      },
    ],
  },
  {
    story: "test/systemd/documented-commands.test.ts",
    broken: "a dry run of install fails",
    edits: [
      {
        file: "src/cli/commands/install.ts",
        from: "if (options.dryRun) return ExitCode.ok;",
        to: "if (options.dryRun) return ExitCode.findings;",
      },
    ],
  },
  {
    story: "test/cluster/ipv6.test.ts",
    broken: "an agent's pod has no URL of an API server with an IPv6 address",
    edits: [
      {
        file: "src/kube/cluster.ts",
        from: 'const address = host.includes(":") ? `[${host}]` : host;',
        to: "const address = host;",
      },
    ],
  },
  {
    story: "test/cluster/without-agents.test.ts",
    broken: "no node counts as one without an agent",
    edits: [
      {
        file: "src/fleet/without-agents.ts",
        from: "return WITHOUT.includes(agent);",
        to: "return agent === undefined;",
      },
    ],
  },
  {
    story: "test/cluster/without-agents.test.ts",
    broken: "a one-shot pod heals by no plan",
    edits: [
      { file: "src/fleet/heal-by-pod.ts", from: 'dryRun ? "--dry-run" : `--plan=${planDigest}`', to: '"--dry-run"' },
    ],
  },
  {
    story: "test/crio/guard.test.ts",
    broken: "a DEL whose ADD never completed is not queued",
    edits: [
      {
        file: "src/guard/decide.ts",
        from: 'if (!hasCompleted(del)) return { do: "queue", code: "add-never-completed" };',
        to: 'if (!hasCompleted(del)) return { do: "pass-on", code: "unknown-error" };',
      },
    ],
  },
  {
    story: "test/systemd/guard.test.ts",
    broken: "--restart restarts nothing",
    edits: [
      {
        file: "src/cli/commands/cni.ts",
        from: "if (flags.restart !== true) {",
        to: "if (flags.restart !== undefined || flags.restart === undefined) {",
      },
    ],
  },
];
