/** A runtime that the clients are tried on: simulated, or real and of some version. */
export interface CriBackend {
  /** May be another one after a power cut. */
  socket(): string;
  powerCut(): Promise<void>;
  restartRuntime(): Promise<void>;
  /** Where a container cannot refuse to end on its own, makes it do so; returns what ends that. */
  slowStops(): () => void;
  close(): Promise<void>;
}

/** Where runtimes rightly differ. */
export interface CriManners {
  readonly runtimeName: RegExp;
  readonly runtimeVersion: RegExp;
  readonly stopOfUnknown: "succeeds" | "not-found";
  readonly containerEvents: boolean;
  /** Since 2.0: a store of sandboxes besides the container records; since 2.1 also a lease for each. */
  readonly sandboxStore: boolean;
}
