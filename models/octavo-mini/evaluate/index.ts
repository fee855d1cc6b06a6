export { ChatClient, ServerError } from "./client.js";
export { type SuiteFigure, runSuite, type SuiteOptions, type SuiteResult } from "./suite.js";
