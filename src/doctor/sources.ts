import { describeKeeper, isSerious, type KeeperState } from "../durable/keeper-state.ts";
import type { Source } from "../host/source.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import { problemsIn } from "../report/build.ts";
import { absentCheck, type Check, missing, optionalCheck, passed } from "./doctor-report.ts";

const NEEDED_FOR: Readonly<Record<string, string>> = {
  boot: "distinguishing this boot from the previous one",
  cri: "everything: the runtime lists the sandboxes",
  containerd: "records, tasks and leases of sandboxes",
  processes: "proving that a sandbox is dead",
  kubernetes: "knowing which pods are gone",
};

/** Whether each source of a scan can be read here, checked with the scan's own readers. */
export function checkSources(snapshot: Snapshot): readonly Check[] {
  const problems = Map.groupBy(problemsIn(snapshot), ({ source }) => source);
  const { cni } = snapshot;
  const sources: readonly (readonly [string, Source<unknown>])[] = [
    ["boot", snapshot.boot],
    ["cri", snapshot.cri],
    ["containerd", snapshot.containerd],
    ["cni configuration", cni.conf],
    ["cni results", cni.results],
    ["multus cache", cni.multus],
    ["flannel scratch", cni.flannel],
    ["host-local leases", cni.hostLocal],
    ["network namespaces", snapshot.netns],
    ["processes", snapshot.processes],
    ["logs", snapshot.logs],
  ];
  const checks = sources.map(([name, source]): Check => {
    const id = `read ${name}`;
    const [first, ...more] = problems.get(name) ?? [];
    if (first !== undefined) {
      const rest = more.length === 0 ? "" : ` (and ${more.length} more)`;
      return missing(id, `${first.problem}${rest}`, NEEDED_FOR[name] ?? "findings about it", first.next);
    }
    return source.status === "absent" ? absentCheck(id, source.reason) : passed(id, "read");
  });
  return [...checks, checkKubernetes(snapshot.kubernetes)];
}

function checkKubernetes({ source, error }: Snapshot["kubernetes"]): Check {
  const id = "read kubernetes";
  if (error !== undefined) return missing(id, error, NEEDED_FOR["kubernetes"] ?? "");
  return source === "none" ? absentCheck(id, "not asked (--no-kube)") : passed(id, `pods by the ${source}`);
}

const ID = "durable CNI files";

/** A node without a keeper is normal: it only has more to heal after a power cut. */
export function checkCniFiles(keeper: KeeperState | undefined): Check {
  const detail = describeKeeper(keeper);
  if (keeper === undefined) return absentCheck(ID, detail);
  if (!keeper.problems.some(isSerious)) return passed(ID, detail);
  return optionalCheck(missing(ID, detail, "CNI files that a power cut does not empty", "See docs/durability.md."));
}
