import { definePlan } from "anabranch";

// This file runs once, when the plan is built. What it describes then answers every request.
const MOST = 5;

export default definePlan({
  name: "NAME",
  build: (ctx) =>
    ctx
      // The rows that the request brings, in `candidates`.
      // Instead of it, `ctx.viewer({ endpoint: ENDPOINT })` begins with the user who asks.
      .candidates({})
      // Operators on keys (columns) and parameters (`P`, of the request) make expressions, computed for each row.
      .filter({ pred: Key.id * 2 > 6 && Key.id != 8 })
      .take({ count: MOST }),
});
