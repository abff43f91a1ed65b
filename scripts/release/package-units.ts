import { DEFAULT_STATE_DIR, type HookSettings, type RuntimeService, runtimeUnit } from "../../src/boot/install/hook.ts";
import { afterUnit, agentUnit, beforeUnit, comment, type Unit } from "../../src/boot/install/units.ts";

const SETTINGS: HookSettings = {
  program: "/usr/bin/unghost",
  stateDir: DEFAULT_STATE_DIR,
  deadlineSeconds: 60,
  bootArgs: [],
};

const CONTAINERD = serviceOf("containerd");
const CRIO = serviceOf("cri-o");

const DISABLED =
  "The package installs this unit disabled: `systemctl enable` it on a node with containerd or CRI-O and a kubelet of their own. " +
  "Elsewhere (k3s, rke2, k0s, microk8s) `unghost install` writes units that fit the distribution, which replace this one.";

/** The units of the packages, by file name. None is enabled by the package. */
export const PACKAGE_UNITS: ReadonlyMap<string, string> = new Map([
  packaged(agentUnit(SETTINGS), ["multi-user.target"]),
  packaged(beforeUnit([CONTAINERD], SETTINGS), ["containerd.service"]),
  packaged(afterUnit([CONTAINERD, CRIO], SETTINGS), ["containerd.service", "crio.service"]),
]);

function packaged({ name, text }: Unit, wantedBy: readonly string[]): readonly [string, string] {
  const [purpose = ""] = text.split("\n#\n", 1);
  const sections = text.slice(text.indexOf("\n\n["));
  return [name, `${purpose}\n#\n${comment(DISABLED)}${sections}\n[Install]\nWantedBy=${wantedBy.join(" ")}\n`];
}

function serviceOf(name: "containerd" | "cri-o"): RuntimeService {
  const distribution = runtimeUnit(name);
  return { distribution, service: distribution.service, seenAt: "" };
}
