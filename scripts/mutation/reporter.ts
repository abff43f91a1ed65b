import { isSurvivor, type MutantResult, mutantOf } from "./mutant.ts";

/** Prints each survivor as soon as it is known: a whole module takes many minutes. */
function survivors() {
  return {
    onMutantTested(result: MutantResult) {
      const mutant = mutantOf(result);
      if (isSurvivor(mutant)) console.log(`${mutant.file}:${mutant.line}  ${mutant.change}`);
    },
  };
}

/** As StrykerJS loads its plugins. */
export const strykerPlugins = [{ kind: "Reporter", name: "survivors", factory: survivors }];
