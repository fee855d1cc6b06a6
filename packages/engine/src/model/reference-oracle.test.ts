import { adapterOracleSuite } from "../testing/adapter-oracle-suite.js";
import { ggufOracleSuite } from "../testing/gguf-oracle-suite.js";
import { modelOracleSuite } from "../testing/model-oracle-suite.js";
import { quantizedOracleSuite } from "../testing/quantized-oracle-suite.js";
import { ReferenceBackend } from "../testing/reference-backend.js";

adapterOracleSuite("reference", () => new ReferenceBackend());
modelOracleSuite("reference", () => new ReferenceBackend());
ggufOracleSuite("reference", () => new ReferenceBackend());
quantizedOracleSuite("reference", () => new ReferenceBackend(), 1e-4);
