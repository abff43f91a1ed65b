import { procText } from "../host/proc.ts";
import { type Check, missing, passed } from "./doctor-report.ts";

/**
 * The cgroup values of a request of 50m. cgroup v2 has the same weight for all requests up to about 25m; runtimes since
 * 2025 convert to higher weights, so there only a pod without a request is detected.
 */
const LEAST = { shares: 50, weight: 2 };

interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cgroups?: string;
}

/**
 * The CPU share of the agent's pod on a busy node. Its nice value has no effect there: the kernel divides time between
 * cgroups first, and the agent is alone in its own.
 */
export function checkCpuShare({ env, cgroups = "/sys/fs/cgroup" }: Place): readonly Check[] {
  // Set by the chart: other pods, like those of kubectl debug, do not run the keeper.
  if (env["POD_UID"] === undefined) return [];
  const weight = numberIn(`${cgroups}/cpu.weight`);
  const shares = numberIn(`${cgroups}/cpu/cpu.shares`) ?? numberIn(`${cgroups}/cpu,cpuacct/cpu.shares`);
  const [value, least, unit] =
    weight === undefined ? [shares, LEAST.shares, "cpu.shares"] : [weight, LEAST.weight, "cpu.weight"];
  if (value === undefined) return [];
  const detail = `${unit} ${value}`;
  if (value >= least) return [passed("cpu request", detail)];
  const neededFor = "syncing CNI files within a second on a busy node";
  return [missing("cpu request", `${detail}, of a small request or none`, neededFor, NEXT)];
}

const NEXT = "Set resources.requests.cpu to 100m.";

function numberIn(path: string): number | undefined {
  const number = Number.parseInt(procText(path), 10);
  return Number.isNaN(number) ? undefined : number;
}
