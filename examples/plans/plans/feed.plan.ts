// Posts of the people that the viewer follows, and some of people that they might like: ranked, at most two of an
// author, by a deadline.

import { definePlan } from "anabranch";
import { PATIENCE_MS, details, popularity, recent, score, store } from "./posts.fragment";

export default definePlan({
  name: "feed",
  deadlineMs: 150,
  build: (ctx) => {
    const viewer = ctx.viewer({ id: "viewer", endpoint: store });

    const followed = viewer
      .follow({
        id: "followed",
        endpoint: store,
        fanout: 20,
        timeoutMs: PATIENCE_MS,
        fallback: [recent, "empty"],
      })
      .media({
        id: "posts",
        endpoint: store,
        fanout: 4,
        timeoutMs: PATIENCE_MS,
        fallback: [recent, "empty"],
      })
      .lookup({
        id: "details",
        ...details,
        timeoutMs: PATIENCE_MS,
        fallback: [recent, { default: { age_hours: 24 } }],
      })
      .vm({ id: "loved", outKey: Key.popularity, expr: popularity })
      .vm({ id: "score", outKey: Key.score, expr: 1 + score });

    // Nice to have: all of it together has 90 ms, or is left out.
    const suggested = viewer
      .recommendation({ id: "suggested", endpoint: store, fanout: 10 })
      .media({ id: "more_posts", endpoint: store, fanout: 2 })
      .lookup({ id: "more_details", ...details })
      .vm({ id: "also_loved", outKey: Key.popularity, expr: popularity })
      .vm({ id: "also_score", outKey: Key.score, expr: score })
      .timeout({ id: "suggestions", timeoutMs: 90, fallback: "empty" });

    return followed
      .union({ id: "all", with: [suggested] })
      .filter({ id: "wanted", pred: Key.age_hours < 60 && !regex(Key.topic, P.muted, "i") })
      .sort({ id: "ranked", key: Key.score, order: "desc" })
      .groupLimit({ id: "diverse", key: Key.author, count: 2 })
      .take({ id: "page", count: 10 });
  },
});
