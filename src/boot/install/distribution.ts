import type { RuntimeUnit, RuntimeUnitName } from "../../distributions/distribution.ts";
import { RUNTIME_UNITS } from "../../distributions/index.ts";

export function runtimeUnit(name: RuntimeUnitName): RuntimeUnit {
  const found = RUNTIME_UNITS.find((known) => known.name === name);
  if (found === undefined) throw new Error(`no runtime unit is called ${name}`);
  return found;
}

/** A distribution's service as it was found on this host: k3s may be installed under another name. */
export interface RuntimeService {
  readonly distribution: RuntimeUnit;
  readonly service: string;
  /** The file that names it. */
  readonly seenAt: string;
}

/** Who starts services here. NixOS and Talos are built from a description: nothing written to a running host stays. */
export type ServiceManager = "systemd" | "openrc" | "nixos" | "talos";

export interface Host {
  readonly manager: ServiceManager;
  /** At least one, except on Talos. */
  readonly services: readonly RuntimeService[];
}
