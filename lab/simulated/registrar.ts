/**
 * Names and their ids, in memory only, with the rules of containerd's own registrar: a name has one holder, the same
 * holder may reserve it again, and only an explicit release frees it.
 */
export class Registrar {
  readonly #idByName = new Map<string, string>();
  readonly #nameById = new Map<string, string>();

  /** The error in containerd's words, or undefined if the name is now held by `id`. */
  reserve(name: string, id: string): string | undefined {
    const holder = this.#idByName.get(name);
    if (holder !== undefined && holder !== id) return `name ${quoted(name)} is reserved for ${quoted(holder)}`;
    this.#idByName.set(name, id);
    this.#nameById.set(id, name);
    return undefined;
  }

  release(id: string): void {
    const name = this.#nameById.get(id);
    if (name === undefined) return;
    this.#nameById.delete(id);
    this.#idByName.delete(name);
  }

  clear(): void {
    this.#idByName.clear();
    this.#nameById.clear();
  }
}

/** Go's %q, for the names and ids that occur here. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}
