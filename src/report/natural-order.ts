/**
 * web-2 before web-10: runs of digits compare as numbers. Intl.Collator does the same and takes milliseconds to load.
 */
export function naturalOrder(one: string, other: string): number {
  const left = one.split(/(\d+)/);
  const right = other.split(/(\d+)/);
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const order = compareParts(left[index] ?? "", right[index] ?? "", index % 2 === 1);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function compareParts(one: string, other: string, areNumbers: boolean): number {
  if (areNumbers) {
    const [left, right] = [one.replace(/^0+/, ""), other.replace(/^0+/, "")];
    if (left.length !== right.length) return left.length - right.length;
    if (left !== right) return left < right ? -1 : 1;
  }
  return one < other ? -1 : one > other ? 1 : 0;
}
