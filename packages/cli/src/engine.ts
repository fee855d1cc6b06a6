export * from "@octavo/engine";
