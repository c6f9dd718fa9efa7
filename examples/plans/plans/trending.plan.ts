// The best posts of suggested people, by a model.

import { definePlan } from "anabranch";
import { store } from "./posts.fragment";

export default definePlan({
  name: "trending",
  build: (ctx) =>
    ctx
      .viewer({ id: "viewer", endpoint: store })
      .recommendation({ id: "suggested", endpoint: store, fanout: 10 })
      .fanout({
        id: "posts",
        endpoint: store,
        key: "media:{id}",
        limit: 4,
        fields: [Key.likes, Key.age_hours, Key.topic, Key.title],
        fieldsKey: "post:{id}",
      })
      .fill({ id: "known", keys: [Key.likes], value: 0 })
      .model({
        id: "score",
        outKey: Key.score,
        kind: "linear",
        model: { intercept: 0.5, weights: { likes: 0.01, age_hours: -0.02 } },
        range: { score: [-100, 100] },
        fallback: { default: { score: 0 } },
      })
      .boost({ id: "science", outKey: Key.score, pred: Key.topic in ["science", "rivers"], add: 0.5 })
      .topk({ id: "top", key: Key.score, count: 5 }),
});
