import { definePlan } from "anabranch";

// This file runs once, when the plan is built. What it describes then answers every request.
const OLDEST_HOURS = 72;

export default definePlan({
  name: "NAME",
  build: (ctx) => {
    const store = EP.redis.store;
    const posts = ctx
      .viewer({ endpoint: store }) // who asks,
      .follow({ endpoint: store }) // whom they follow,
      .media({ endpoint: store }) // and what these have posted
      .lookup({ endpoint: store, key: "post:{id}", fields: [Key.title, Key.likes, Key.age_hours] });

    // Operators on keys (columns) and parameters (of the request) make expressions, computed for each row.
    const popularity = log(1 + coalesce(Key.likes, 0));

    return posts
      .filter({ pred: Key.title != null && Key.age_hours < OLDEST_HOURS })
      .vm({ outKey: Key.score, expr: popularity - P.freshness * Key.age_hours })
      .sort({ by: Key.score, order: "desc" })
      .take({ count: 10 });
  },
});
