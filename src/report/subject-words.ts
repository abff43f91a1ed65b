import type { NodeReport } from "./node-report.ts";

type AnySubject = Partial<NodeReport["findings"][number]["subject"]> & { readonly type: string };

/** A subject in one line: the pod first, because it is the most familiar name. */
export function subjectInWords(subject: AnySubject): string {
  const pod = subject.pod ? `${subject.pod.namespace}/${subject.pod.name} (attempt ${subject.pod.attempt})` : undefined;
  const id = subject.sandboxId?.slice(0, 13);
  const pid = subject.pid === undefined ? undefined : `pid ${subject.pid}`;
  const words = [pod, id, subject.path, pid].filter((word) => word !== undefined);
  return words.length > 0 ? words.join("  ") : (subject.name ?? subject.type);
}
