import fc from "fast-check";

/** The same examples every time, so that failures are reproducible; `FUZZ_SEED=$RANDOM make unit` uses others. */
fc.configureGlobal({ seed: Number(process.env["FUZZ_SEED"] ?? 20_261_115) });
