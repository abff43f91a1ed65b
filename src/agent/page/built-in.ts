/** What scripts/build-page.ts puts in: the page is of one version. */
declare const UNGHOST_VERSION: string;

export const PAGE_VERSION = UNGHOST_VERSION;
