/** Problems reported in the kernel's own log. */
export interface KernelFacts {
  /** Processors that made no progress: RCU stalls and soft lock-ups. */
  readonly stalls: KernelSign;
  /** Tasks in uninterruptible sleep for minutes. */
  readonly hungTasks: KernelSign;
  /** Network devices that cannot go away because somebody still refers to them. */
  readonly netdeviceWaits: KernelSign;
  /** Whether the ring still has its first record: else the counts are the least there were. */
  readonly sinceBoot: boolean;
}

export interface KernelSign {
  readonly count: number;
  readonly last?: { readonly text: string; readonly secondsAfterBoot: number };
}
