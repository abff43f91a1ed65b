/** An object of the cluster; the server uses only its metadata. */
export interface ApiObject {
  readonly metadata: Metadata;
  readonly [field: string]: unknown;
}

export interface Metadata {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly [field: string]: unknown;
}

/** The error of a request, like an API server's. */
export interface Refusal {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isApiObject(value: unknown): value is ApiObject {
  return isRecord(value) && isRecord(value["metadata"]);
}

export function statusOf({ code, reason, message }: Refusal): object {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}
