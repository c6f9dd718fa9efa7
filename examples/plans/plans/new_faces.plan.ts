// Friends of friends that the viewer does not follow yet.

import { definePlan } from "anabranch";
import { store } from "./posts.fragment";

export default definePlan({
  name: "new_faces",
  build: (ctx) => {
    const viewer = ctx.viewer({ id: "viewer", endpoint: store });
    const followed = viewer.follow({ id: "followed", endpoint: store, fanout: 50 });
    // Runs only if friends of friends are late.
    const suggested = viewer.recommendation({ id: "suggested", endpoint: store, fanout: 10 });
    return followed
      .follow({ id: "friends", endpoint: store, fanout: 10, timeoutMs: 60, fallback: [suggested, "empty"] })
      .dedupe({ id: "once" })
      .join({ id: "strangers", with: followed, kind: "anti" })
      .join({ id: "others", with: viewer, kind: "anti" })
      .take({ id: "few", count: 8 });
  },
});
