import { classById, classes } from "../classes/index.ts";
import { didYouMean } from "./config/suggest.ts";
import { SettingsError } from "./settings-error.ts";

/** A mistyped class in --only or --skip must not silently mean "none". */
export function checkClassNames(names: readonly string[]): void {
  for (const name of names) {
    if (classById(name) !== undefined) continue;
    const hint =
      didYouMean(
        name,
        classes.map(({ id }) => id),
      ) || "; unghost explain --list names them all";
    throw new SettingsError(`unknown failure class "${name}"${hint}`);
  }
}
