/** A VolumeAttachment of this node that is not attached, or is and waits to be detached. */
export interface UnattachedVolume {
  readonly name: string;
  readonly uid: string;
  /** The CSI driver whose external-attacher has to do it. */
  readonly attacher: string;
  /** What the cluster calls this node. */
  readonly node: string;
  /** Its PersistentVolume; missing where a pod spells its volume out in place. */
  readonly volume?: string;
  readonly attached: boolean;
  readonly createdAt: Date;
  /** Its deletion was asked for, and is not finished. */
  readonly deleting: boolean;
  /** When its deletion was asked for. */
  readonly deletedAt?: Date;
  readonly finalizers: readonly string[];
  /** The attacher's own words. */
  readonly error?: string;
  readonly claim?: { readonly namespace: string; readonly name: string };
  /** Other nodes that the same volume is attached to. */
  readonly attachedTo: readonly string[];
  readonly lease?: AttacherLease;
  /** What could not be learnt, and why. */
  readonly unknown: readonly string[];
}

/** What an external-attacher renews every few seconds for as long as it works. */
export interface AttacherLease {
  readonly name: string;
  readonly holder: string;
  readonly durationSeconds: number;
  readonly renewedAt: Date;
}
