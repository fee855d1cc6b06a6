import { ggufOracleSuite } from "../testing/gguf-oracle-suite.js";
import { modelOracleSuite } from "../testing/model-oracle-suite.js";
import { ReferenceBackend } from "../testing/reference-backend.js";

modelOracleSuite("reference", () => new ReferenceBackend());
ggufOracleSuite("reference", () => new ReferenceBackend());
