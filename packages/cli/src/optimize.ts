export * from "@octavo/optimize";
