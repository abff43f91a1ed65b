import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { GrpcError, GrpcStatus } from "../../src/runtime/grpc-status.ts";

/** The calls of runtime.v1.RuntimeService that are simulated. */
export type CallName =
  | "version"
  | "status"
  | "runPodSandbox"
  | "stopPodSandbox"
  | "removePodSandbox"
  | "podSandboxStatus"
  | "listPodSandbox"
  | "createContainer"
  | "startContainer"
  | "stopContainer"
  | "removeContainer"
  | "listContainers"
  | "containerStatus"
  | "getContainerEvents";

/** What goes wrong on purpose. Everything is replaced as a whole by the next script() that names it. */
export interface Faults {
  /** The text that CNI ADD fails with, by pod name. */
  readonly addErrors: Readonly<Record<string, string>>;
  /** The text that CNI DEL fails with, by sandbox id. */
  readonly delErrors: Readonly<Record<string, string>>;
  /** Pod names (for ADD) and sandbox ids (for DEL) whose plugin hangs until it is taken off this list: "killed". */
  readonly hangs: readonly string[];
  readonly latencyMs: Readonly<Partial<Record<CallName, number>>>;
  /** Lists with a larger answer end in ResourceExhausted. containerd's own limit is 16 MiB. */
  readonly maxMessageBytes: number;
  /**
   * - `serving`: answers.
   * - `starting`: answers every call with Unavailable, as containerd does until its CRI plugin has recovered.
   * - `mute`: accepts every call and never answers.
   */
  readonly mode: "serving" | "starting" | "mute";
}

const NO_FAULTS: Faults = {
  addErrors: {},
  delErrors: {},
  hangs: [],
  latencyMs: {},
  maxMessageBytes: 16 * 1024 * 1024,
  mode: "serving",
};

/** The faults in force, and the waiting that they cause. */
export class Script {
  #faults: Faults = NO_FAULTS;
  #power = new AbortController();
  readonly #changes = new EventEmitter<{ change: [] }>();

  constructor() {
    this.#changes.setMaxListeners(0);
  }

  get faults(): Faults {
    return this.#faults;
  }

  /** Aborted when the machine under the runtime goes down: whatever waits then must leave the store as it is. */
  get power(): AbortSignal {
    return this.#power.signal;
  }

  change(change: Partial<Faults>): void {
    this.#faults = { ...this.#faults, ...change };
    this.#changes.emit("change");
  }

  cutPower(): void {
    this.#power.abort();
    this.#power = new AbortController();
  }

  /** At the door of every call. */
  async admit(call: CallName): Promise<void> {
    const delay = this.#faults.latencyMs[call] ?? 0;
    if (delay > 0) await sleep(delay, undefined, { signal: this.power });
    await this.#whileTrue(() => this.#faults.mode === "mute");
    if (this.#faults.mode === "starting") {
      throw new GrpcError(GrpcStatus.unavailable, "server is not initialized yet");
    }
  }

  /** Returns whether the plugin of that subject hung, and was ended from outside. */
  async hung(subject: string): Promise<boolean> {
    if (!this.#faults.hangs.includes(subject)) return false;
    await this.#whileTrue(() => this.#faults.hangs.includes(subject));
    return true;
  }

  async #whileTrue(condition: () => boolean): Promise<void> {
    const signal = this.power;
    while (condition()) await once(this.#changes, "change", { signal });
  }
}

/** Whether a wait ended because the machine went down, and not because of anything in the call. */
export function isPowerCut(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
