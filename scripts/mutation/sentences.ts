/** The part of babel's NodePath that is read here. */
interface NodePath {
  readonly listKey?: string;
  readonly key: string | number | null;
  readonly parent: {
    readonly type: string;
    readonly callee?: { readonly type: string; readonly name?: string };
  } | null;
}

/** The sentence of `reason("code", "sentence")` is only for users; its code is mutated. */
function shouldIgnore({ listKey, key, parent }: NodePath): string | undefined {
  const isSentence = listKey === "arguments" && key === 1 && parent?.callee?.name === "reason";
  return isSentence ? "only a sentence for users" : undefined;
}

/** The export that StrykerJS expects of plugins. */
export const strykerPlugins = [{ kind: "Ignore", name: "sentences", value: { shouldIgnore } }];
