export * from "./certificate.js";
export * from "./certify.js";
