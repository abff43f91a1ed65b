import type { KubeError } from "../../kube/kube-error.ts";

const FIRST_MS = 5000;
const LONGEST_MS = 5 * 60_000;
/** Credentials that may not do it seldom learn it. */
const REFUSED_MS = 30 * 60_000;

/** How long to leave the API alone after this many failures in a row. */
export function backOffMs({ kind, retryAfterSeconds = 0 }: KubeError, failures: number, random: () => number): number {
  if (kind === "forbidden") return REFUSED_MS;
  const growing = Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  return Math.max(retryAfterSeconds * 1000, growing * (1 + random() / 4));
}
