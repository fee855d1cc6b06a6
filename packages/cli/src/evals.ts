export * from "@octavo/evals";
