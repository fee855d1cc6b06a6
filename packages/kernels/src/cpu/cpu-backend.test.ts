import { backendConformance } from "../testing/backend-conformance.js";
import { createCpuBackend } from "./cpu-backend.js";

backendConformance("cpu", (numThreads) => createCpuBackend({ numThreads }), {
  takesGiven: true,
});
