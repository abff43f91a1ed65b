import type { RuntimeUnit, RuntimeUnitName } from "../../host/distributions/distribution.ts";
import { RUNTIME_UNITS } from "../../host/distributions/index.ts";

export function runtimeUnit(name: RuntimeUnitName): RuntimeUnit {
  const found = RUNTIME_UNITS.find((known) => known.name === name);
  if (found === undefined) throw new Error(`no runtime unit is called ${name}`);
  return found;
}

/** A distribution's service on this host: k3s may be installed under another name. */
export interface RuntimeService {
  readonly distribution: RuntimeUnit;
  readonly service: string;
  /** The file in which it was found. */
  readonly seenAt: string;
}

/** The service manager. NixOS and Talos are built from a configuration: changes on a running host are lost. */
export type ServiceManager = "systemd" | "openrc" | "nixos" | "talos";

export interface Host {
  readonly manager: ServiceManager;
  /** At least one, except on Talos. */
  readonly services: readonly RuntimeService[];
}
