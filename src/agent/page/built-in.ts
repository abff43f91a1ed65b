/** What scripts/build-page.ts puts in: the page is of one version and brings the catalogue's words along. */
declare const UNGHOST_VERSION: string;
declare const UNGHOST_CLASSES: Readonly<Record<string, ClassWords>>;

export interface ClassWords {
  readonly code: string;
  readonly title: string;
  readonly explanation: string;
}

export const PAGE_VERSION = UNGHOST_VERSION;

export function classWords(classId: string): ClassWords {
  return UNGHOST_CLASSES[classId] ?? { code: "", title: classId, explanation: "" };
}
