// A first page: posts of people that the viewer follows, and of suggested ones if the request wants to explore.

import { definePlan } from "anabranch";
import { PATIENCE_MS, store } from "./posts.fragment";

export default definePlan({
  name: "home",
  build: (ctx) => {
    const viewer = ctx.viewer({ id: "viewer", endpoint: store });
    const followed = viewer.follow({ id: "followed", endpoint: store, fanout: 5 });
    const suggested = viewer.recommendation({
      id: "suggested",
      endpoint: store,
      fanout: 5,
      timeoutMs: PATIENCE_MS,
      fallback: "empty",
    });
    const both = followed.union({ id: "both", with: [suggested] });
    // JavaScript cannot branch on what only a request knows; the `if` op does, and what it does not choose never runs.
    return followed
      .if({ id: "people", pred: P.explore, then: both })
      .media({ id: "posts", endpoint: store, fanout: 2 })
      .take({ id: "page", count: 12 });
  },
});
