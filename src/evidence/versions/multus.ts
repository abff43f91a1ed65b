/** What multus does differs by release; a node does not show its version, so these are printed and not compared. */
export const MULTUS = {
  /** Up to here a cache that does not parse fails every DEL; later ones succeed without calling any delegate. */
  corruptCacheFailsUpTo: "3.9",
  /** From this major release on a cache that does not parse makes DEL succeed: what the marker relies on. */
  markerReadFrom: 4,
  /** The thick plugin's shim answers DEL with success from here on, whatever the daemon reports. */
  shimSwallowsDelErrorsFrom: "4.0.2",
  /** In between, fields of its own are stripped from a delegate's file-based configuration on DEL. */
  lossyConflist: { from: "4.2.1", to: "4.3.0" },
} as const;
