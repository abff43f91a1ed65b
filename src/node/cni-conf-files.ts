import { posix } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, fileText, statsOf } from "../host/safe-fs.ts";
import { parseJson, printable, property, stringIn } from "../host/text.ts";
import { confFilesIn, installedIn, parseNetworkConf } from "./cni-conf.ts";
import type { CniConfFile, ConfInFront } from "./types/cni.ts";

/** The runtime uses the first file: one of an uninstalled add-on hides the network that works. */
export function faultInFront([first, ...others]: readonly CniConfFile[]): ConfInFront | undefined {
  const fault = first === undefined ? undefined : faultOf(first);
  const working = others.find((one) => faultOf(one) === undefined);
  if (first === undefined || fault === undefined || working === undefined) return undefined;
  return { file: first.file, fault, working: working.file };
}

function faultOf({ notInstalled, missingKubeconfigs }: CniConfFile): string | undefined {
  const [plugin] = notInstalled;
  if (plugin !== undefined) return `its plugin ${plugin} is not installed`;
  const [kubeconfig] = missingKubeconfigs;
  return kubeconfig === undefined ? undefined : `the kubeconfig that it names, ${kubeconfig}, does not exist`;
}

const MAX_FILES = 20;
const MAX_CONF_BYTES = 2 * 1024 * 1024;

/** Every valid file in the order in which the runtime prefers them; the first one is used. */
export function readCniConfFiles(root: string, dir: string, binDirs: readonly string[]): readonly CniConfFile[] {
  const names = confFilesIn(entriesIn(resolveOnHost(root, dir, "follow")));
  return names
    .toSorted()
    .slice(0, MAX_FILES)
    .flatMap((name) => {
      const text = fileText(resolveOnHost(root, posix.join(dir, name), "follow"), MAX_CONF_BYTES);
      const conf = parseNetworkConf(text, name.endsWith(".conflist"));
      if ("problem" in conf) return [];
      const types = conf.chain.flatMap((plugin) => stringIn(plugin, "type") ?? []);
      const kubeconfigs = conf.chain.flatMap(kubeconfigsIn);
      return [
        {
          file: `${dir}/${printable(name)}`,
          cniVersion: stringIn(parseJson(text), "cniVersion"),
          plugins: types.map(printable),
          notInstalled: types.filter((type) => !installedIn(root, binDirs, type)).map(printable),
          kubeconfigs: kubeconfigs.map(printable),
          missingKubeconfigs: kubeconfigs
            .filter((path) => statsOf(resolveOnHost(root, path, "follow")) === undefined)
            .map(printable),
        },
      ];
    });
}

/** multus has it at the top, calico and others in their section `kubernetes`. */
function kubeconfigsIn(plugin: object): readonly string[] {
  const named = [property(plugin, "kubeconfig"), property(property(plugin, "kubernetes"), "kubeconfig")];
  return named.flatMap((path) => (typeof path === "string" && path.startsWith("/") ? [path] : []));
}
