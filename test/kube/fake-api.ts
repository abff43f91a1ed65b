import type { Api } from "../../src/kube/api.ts";

/** An API with only these answers: any other request fails the test. */
export function fakeApi(answers: Partial<Api>): Api {
  const refuse = (what: string) => (path: string) => Promise.reject(new Error(`unexpected ${what} ${path}`));
  return {
    get: refuse("GET"),
    create: refuse("POST"),
    replace: refuse("PUT"),
    patch: refuse("PATCH"),
    apply: refuse("PATCH"),
    delete: refuse("DELETE"),
    watch: (path) => {
      throw new Error(`unexpected watch of ${path}`);
    },
    stream: (path) => {
      throw new Error(`unexpected stream of ${path}`);
    },
    close: () => undefined,
    ...answers,
  };
}

/** Records deletions, as path and options in turn, and counts how often it is closed. */
export interface RecordingApi extends Api {
  readonly deleted: readonly unknown[];
  closed: number;
}

/** `onDelete` changes later answers of `get`, or throws the error of the deletion. */
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
