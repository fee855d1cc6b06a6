export { errorCodes, OctavoError, type ErrorCode, type OctavoErrorOptions } from "./errors.js";
