/** One endpoint in front of many LLM servers. */
export * from "@octavo/gateway";
