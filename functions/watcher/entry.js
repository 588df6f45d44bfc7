import Program from "./build/index.js";
import { guarded } from "../../crates/edge/guarded.js";

export default guarded(Program);
