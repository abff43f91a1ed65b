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

/** Keeps what is deleted, as path and options in turn, and counts how often it is closed. */
export interface RecordingApi extends Api {
  readonly deleted: readonly unknown[];
  closed: number;
}

/** `onDelete` changes what `get` answers from then on, or throws what the deletion fails with. */
export function recordingApi(get: Api["get"], onDelete: () => void): RecordingApi {
  const deleted: unknown[] = [];
  const api: RecordingApi = {
    ...fakeApi({ get }),
    delete: async (path, options) => {
      onDelete();
      deleted.push(path, options);
      return await Promise.resolve({});
    },
    deleted,
    closed: 0,
    close: () => {
      api.closed += 1;
    },
  };
  return api;
}
