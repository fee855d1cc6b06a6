export * from "@octavo/tracing";
