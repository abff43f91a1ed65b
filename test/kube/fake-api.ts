import type { Api } from "../../src/kube/api.ts";

/** An API that answers what it is given and nothing else: any other request fails the test. */
export function fakeApi(answers: Partial<Api>): Api {
  const refuse = (what: string) => (path: string) => Promise.reject(new Error(`unexpected ${what} ${path}`));
  return {
    get: refuse("GET"),
    create: refuse("POST"),
    replace: refuse("PUT"),
    patch: refuse("PATCH"),
    delete: refuse("DELETE"),
    watch: (path) => {
      throw new Error(`unexpected watch of ${path}`);
    },
    close: () => undefined,
    ...answers,
  };
}
