import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { GrpcError, GrpcStatus } from "../../src/runtime/errors.ts";

/** The simulated calls of runtime.v1.RuntimeService. */
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

/** Injected faults. Each key is replaced as a whole by the next script() that sets it. */
export interface Faults {
  /** The error text of CNI ADD, by pod name. */
  readonly addErrors: Readonly<Record<string, string>>;
  /** The error text of CNI DEL, by sandbox id. */
  readonly delErrors: Readonly<Record<string, string>>;
  /** Pod names (for ADD) and sandbox ids (for DEL) whose plugin hangs until it is removed from this list: "killed". */
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

/** The current faults, and the waits that they cause. */
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

  /** Aborted on a power cut: waiting calls must then leave the store unchanged. */
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

  /** Called at the start of every call. */
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

/** Whether a wait ended because of a power cut. */
export function isPowerCut(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
