// What the plans about posts share.

import type { Fallback } from "anabranch";

/** Where everything is kept. */
export const store = EP.redis.redis_default;

/** How long a read may take before something stands in for it. */
export const PATIENCE_MS = 40;

/** What a read said at most ten minutes ago, as long as somebody remembers it. */
export const recent: Fallback = { stale: { maxAgeMs: 10 * 60 * 1000 } };

/** Where the hash of a post is, and what is in it. */
export const details = {
  endpoint: store,
  key: "post:{id}",
  fields: [Key.author, Key.likes, Key.age_hours, Key.topic, Key.title],
};

/** The logarithm of the likes: a hundred likes more mean a lot to a post that has ten. */
export const popularity = log(1 + coalesce(Key.likes, 0));

/** How good a post is: popular, and not too old. */
export const score = Key.popularity - P.freshness * coalesce(Key.age_hours, 100);
