import { classById, classes } from "../classes/index.ts";
import { SettingsError } from "./settings-error.ts";

/** A mistyped class in --only or --skip must not silently mean "none". */
export function checkClassNames(names: readonly string[]): void {
  for (const name of names) {
    if (classById(name) !== undefined) continue;
    const near = classes.map(({ id }) => id).filter((id) => id.includes(name) || name.includes(id));
    const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : "`unghost explain --list` names them all.";
    throw new SettingsError(`unknown failure class "${name}": ${hint}`);
  }
}
