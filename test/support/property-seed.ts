import fc from "fast-check";

/** The same examples every time, so that a change fails for its own faults; `FUZZ_SEED=$RANDOM make unit` tries others. */
fc.configureGlobal({ seed: Number(process.env["FUZZ_SEED"] ?? 20_261_115) });
