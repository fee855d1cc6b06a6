export { ChatClient, ServerError } from "./client.js";
export { type Figure, runSuite, type SuiteOptions, type SuiteResult } from "./suite.js";
