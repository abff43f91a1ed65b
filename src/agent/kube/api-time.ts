/** As Kubernetes keeps times in conditions and events: in whole seconds. */
export function apiTime(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}
