import type { Group } from "../diagnose/explain/group.ts";
import { printable } from "../host/text.ts";
import type { NamedPod } from "../node/types/ids.ts";

type Names = Pick<Group, "pods" | "sandboxIds">;

const MAX_NAMED = 5;
/** Like crictl; scan and heal accept them as an id. */
const ID_CHARACTERS = 13;

export function who({ pods, sandboxIds }: Names): string | undefined {
  const named = [
    listed("pod", pods.map(podName)),
    listed(
      "sandbox",
      sandboxIds.map((id) => id.slice(0, ID_CHARACTERS)),
      "es",
    ),
  ].filter((one) => one !== undefined);
  return named.length === 0 ? undefined : named.join("; ");
}

function listed(what: string, names: readonly string[], plural = "s"): string | undefined {
  if (names.length === 0) return undefined;
  const more = names.length - MAX_NAMED;
  const some = names.slice(0, MAX_NAMED).map(printable).join(", ");
  return `${what}${names.length === 1 ? "" : plural} ${some}${more > 0 ? ` and ${more} more` : ""}`;
}

function podName({ namespace, name }: NamedPod): string {
  return `${namespace}/${name}`;
}

/** The only sandbox or pod in the text. */
export function onlyTarget({ sandboxIds, pods }: Names): string {
  const [id] = sandboxIds;
  const [pod] = pods;
  if (sandboxIds.length > 1 || pods.length > 1) return "";
  if (id !== undefined) return ` ${id.slice(0, ID_CHARACTERS)}`;
  return pod === undefined ? "" : ` ${podName(pod)}`;
}

/** Containers and leases have their own ids. */
const OTHER_ID = /crictl (?:inspect|stop|rm) <id>|leases rm <id>/;

/** Replaces the placeholders of a command by the names in the text, if it contains exactly one. */
export function withNames(line: string, { sandboxIds, pods }: Names): string {
  const [id] = sandboxIds;
  const [pod] = pods;
  const named = pod === undefined || pods.length > 1 ? line : withPod(line, pod);
  return id === undefined || sandboxIds.length > 1 || OTHER_ID.test(line) ? named : named.replaceAll("<id>", id);
}

function withPod(line: string, { namespace, name, uid }: NamedPod): string {
  const named = line.replaceAll("<namespace>", namespace).replaceAll("<pod>", name);
  return uid === undefined ? named : named.replaceAll("<uid>", uid);
}
