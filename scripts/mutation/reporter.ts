import { isSurvivor, type MutantResult, mutantOf } from "./mutant.ts";

/** Prints each survivor at once, because a module takes many minutes. */
function survivors() {
  return {
    onMutantTested(result: MutantResult) {
      const mutant = mutantOf(result);
      if (isSurvivor(mutant)) console.log(`${mutant.file}:${mutant.line}  ${mutant.change}`);
    },
  };
}

/** The export that StrykerJS expects of plugins. */
export const strykerPlugins = [{ kind: "Reporter", name: "survivors", factory: survivors }];
