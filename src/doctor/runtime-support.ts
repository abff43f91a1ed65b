import { outOfSupport } from "../evidence/versions.ts";
import type { Risk } from "./doctor-report.ts";

export function runtimeRisk(runtime: { readonly name: string; readonly version: string }): readonly Risk[] {
  const upgrade = outOfSupport(runtime);
  if (upgrade === undefined) return [];
  const detail = `${runtime.name} ${runtime.version} gets no fixes any more`;
  return [{ id: "runtime out of support", detail, end: `Upgrade to ${upgrade}.` }];
}
