import type { ClassDefinition } from "./failure-class.ts";

export const imageSnapshotMissing: ClassDefinition = {
  id: "image-snapshot-missing",
  code: "A13",
  sharedCause: true,
  title: "An image's unpacked layers are missing",
  explanation:
    "containerd believes that an image is unpacked, but the snapshotter has lost its layers, so no container can be made from it. If it is the pause image, no pod at all starts on this node. The image has to be unpacked again.",
  mechanism:
    "containerd's metadata names the snapshot chain of each image, and the snapshotter has its own store. After a crash, a change of the snapshotter or a clean-up on one side the two disagree: Prepare finds no parent and answers NotFound, every time.",
  signatures: () => [
    {
      text: 'failed to create containerd container: create snapshot: missing parent "k8s.io/<n>/sha256:<id>" bucket: not found',
      pattern: /missing parent \S{1,200} bucket: not found/,
      confidence: 0.95,
    },
    {
      text: "parent snapshot sha256:<id> does not exist: not found",
      pattern: /parent snapshot \S{1,120} does not exist: not found|overlayfs\/snapshots\/\d{1,9}\/fs: no such file/,
      confidence: 0.85,
    },
    {
      text: "error unpacking image: failed to extract layer sha256:<id>: failed to get reader from content store: content digest sha256:<id>: not found",
      pattern: /failed to get reader from content store: content digest \S{1,120}: not found/,
      unless: /pull(?:ing)? (?:and unpack )?image/,
      confidence: 0.85,
    },
  ],
  logFragments: ["content store", "missing parent", "parent snapshot", "overlayfs/snapshots"],
  inSnapshot: "Image content and snapshots are not compared; the error in the logs names the missing layer.",
  versions: {
    since: "containerd 1.2",
    until: "open",
    ends: "No upgrade. A remote snapshotter that keeps its directory over a restart prevents it.",
    note: "Reported up to 2.2, mostly with remote snapshotters (nydus, stargz) or after a crash of the node.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Find the image: for every pod at once it is the runtime's sandbox (pause) image, else the pod's own.",
      "Remove the image and pull it again, which unpacks it: crictl rmi <image>, crictl pull <image>.",
      "With a remote snapshotter: check that it runs and that its directory is the one from before.",
    ],
    gates: ["The image can be pulled: the registry answers, or an archive of it is at hand."],
  },
  byHand: [
    "crictl rmi <image> && crictl pull <image>; for the pause image its name is in crictl info, sandboxImage.",
    "If it stays: ctr -n k8s.io images rm <image>, ctr -n k8s.io content prune references, then pull.",
  ],
  danger:
    "Do not empty the snapshotter's directory while containers run from it. Without the registry the pause image is gone for good.",
  links: [
    "containerd/containerd#3671",
    "containerd/nydus-snapshotter#680",
    "containerd/nydus-snapshotter#631",
    "confidential-containers/operator#270",
  ],
};

export const crioStorageCorrupt: ClassDefinition = {
  id: "crio-storage-corrupt",
  code: "O7",
  sharedCause: true,
  title: "CRI-O: the image store lost layers in a crash",
  explanation:
    "After a power-off the image store of CRI-O names layers that are not there any more, so no sandbox can be made from its pause image and every new pod on the node fails. The images have to be removed from the store and pulled again.",
  mechanism:
    "containers/storage writes the list of images and that of layers to different files. A crash between the two leaves images whose layers are unknown.",
  signatures: () => [
    {
      text: 'error creating pod sandbox with name "k8s_<pod>_…": layer not known',
      pattern: /: layer not known\b|error locating item named \S{1,40} for image with id/,
      within: /sandbox|container|image|crio|k8s_/,
      confidence: 0.95,
    },
    {
      text: 'error creating read-write layer with ID "<id>": Stat /var/lib/containers/storage/overlay/<id>: no such file or directory',
      pattern:
        /(?:creating read-write layer with id|containers\/storage\/overlay\/)\S{0,90}[^]{0,200}?no such file or directory/,
      within: /sandbox|createcontainer|k8s_/,
      confidence: 0.85,
    },
  ],
  logFragments: ["layer not known", "error locating item", "read-write layer", "containers/storage"],
  inSnapshot: "CRI-O's image store is not read; the message for every new pod is the proof.",
  versions: {
    since: "CRI-O 1.16",
    until: "CRI-O 1.19 in the reports (OKD 4.6)",
    ends: "Upgrade CRI-O: later releases note an unclean shutdown (clean_shutdown_file), and crio wipe clears the store at the next boot.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Cordon and drain the node, and stop kubelet and crio.",
      "crio wipe -f, or move /var/lib/containers/storage/overlay-images away.",
      "Start crio and kubelet: images are pulled again.",
    ],
    gates: ["All images can be pulled again."],
  },
  byHand: [
    "systemctl stop kubelet crio; mv /var/lib/containers/storage/overlay-images{,.broken}; systemctl start crio kubelet",
  ],
  danger: "Wiping the whole store while containers run takes the file systems from under them.",
  links: ["cri-o/cri-o#4285", "cri-o/cri-o#3768", "cri-o/cri-o#5793"],
};
