/** The time format of conditions and events: whole seconds. */
export function apiTime(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}
