import { procText } from "../host/proc-fs.ts";
import { type Check, missing, ok } from "./doctor-report.ts";

/**
 * What kubelet and runtimes make of a request of 50m. cgroup v2 has one weight for all requests up to some 25m; runtimes
 * since 2025 convert to higher weights, so there only a pod without a request is noticed.
 */
const LEAST = { shares: 50, weight: 2 };

interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cgroups?: string;
}

/**
 * The share of processor time that the agent's pod gets on a busy node. Its nice value decides nothing there: the kernel
 * divides time between cgroups first, and the agent is alone in its own.
 */
export function checkCpuShare({ env, cgroups = "/sys/fs/cgroup" }: Place): readonly Check[] {
  // Set by the chart: other pods, as those of kubectl debug, keep no files durable.
  if (env["POD_UID"] === undefined) return [];
  const weight = numberIn(`${cgroups}/cpu.weight`);
  const shares = numberIn(`${cgroups}/cpu/cpu.shares`) ?? numberIn(`${cgroups}/cpu,cpuacct/cpu.shares`);
  const [value, least, unit] =
    weight === undefined ? [shares, LEAST.shares, "cpu.shares"] : [weight, LEAST.weight, "cpu.weight"];
  if (value === undefined) return [];
  const detail = `${unit} ${value}`;
  if (value >= least) return [ok("cpu request", detail)];
  const neededFor = "syncing CNI files within a second on a busy node";
  return [missing("cpu request", `${detail}, of a small request or none`, neededFor, NEXT)];
}

const NEXT = "Set resources.requests.cpu to 100m.";

function numberIn(path: string): number | undefined {
  const number = Number.parseInt(procText(path), 10);
  return Number.isNaN(number) ? undefined : number;
}
