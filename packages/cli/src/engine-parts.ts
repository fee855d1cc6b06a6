export * from "@octavo/engine/parts";
