import { placesAt } from "../host/distributions/index.ts";
import type { Source } from "../host/source.ts";
import { flagOf, type RunningKubelet, runningKubelets } from "./kubelet-process.ts";
import type { ProcessTable } from "./process-table.ts";

/** The root directory from a kubelet's flags: its configuration file has no such field. */
export function rootDirOf({ argv }: Pick<RunningKubelet, "argv">): string | undefined {
  const configured = flagOf(argv, "root-dir") ?? embeddedRootDir(argv);
  return configured?.startsWith("/") ? configured.replace(/(?<=.)\/+$/, "") : undefined;
}

/** k3s and rke2 pass kubelet's flags on: `--kubelet-arg=root-dir=/data/kubelet`. */
function embeddedRootDir(argv: readonly string[]): string | undefined {
  const given = argv.flatMap((argument, index) => {
    const [, value] = /^--?kubelet-arg(?:=(.*))?$/s.exec(argument) ?? [];
    return /^--?kubelet-arg/.test(argument) ? [value ?? argv[index + 1] ?? ""] : [];
  });
  const rootDir = given.findLast((flag) => /^(?:--)?root-dir=/.test(flag));
  return rootDir?.slice(rootDir.indexOf("=") + 1);
}

/** The root directory of the running kubelet, else the distribution's default. */
export async function runningKubeletRoot(where: {
  readonly root: string;
  readonly runtimePath: string;
  readonly signal: AbortSignal;
  readonly table: Promise<Source<ProcessTable>>;
}): Promise<string> {
  const { trusted } = await runningKubelets(where.root, where.signal, where.table);
  return trusted.flatMap((kubelet) => rootDirOf(kubelet) ?? [])[0] ?? placesAt(where.runtimePath).kubeletRoot;
}
