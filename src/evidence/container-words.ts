import type { Container } from "../snapshot/types.ts";

/** As the runtime reports it: "main exited (exit 137, Error)". */
export function containerInWords({ name, state, exit }: Container): string {
  if (exit === undefined) return `${name} ${state}`;
  return `${name} ${state} (exit ${exit.exitCode}${exit.reason ? `, ${exit.reason}` : ""})`;
}
