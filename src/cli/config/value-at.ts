/** What stands at a path of keys; a value that has no keys stands for everything below it. */
export function valueAt(inside: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path;
  if (key === undefined || typeof inside !== "object" || inside === null) return inside;
  return valueAt(Object.entries(inside).find(([name]) => name === key)?.[1], rest);
}
