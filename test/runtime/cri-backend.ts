/** A runtime for testing the clients: simulated, or a real one of some version. */
export interface CriBackend {
  /** May be another one after a power cut. */
  socket(): string;
  powerCut(): Promise<void>;
  restartRuntime(): Promise<void>;
  /** Makes containers slow to stop, if they are not on their own; returns a function that reverts it. */
  slowStops(): () => void;
  close(): Promise<void>;
}

/** Legitimate differences between runtimes. */
export interface CriManners {
  readonly runtimeName: RegExp;
  readonly runtimeVersion: RegExp;
  readonly stopOfUnknown: "succeeds" | "not-found";
  readonly containerEvents: boolean;
  /** Since 2.0: a store of sandboxes besides the container records; since 2.1 also a lease for each. */
  readonly sandboxStore: boolean;
}
