import type { CandidateSet } from "anabranch";

export const WEIGHT = 2;

/** A step that several plans share: its arguments may be plain values, keys or expressions. */
export function scored(rows: CandidateSet, base: number, keep: boolean): CandidateSet {
  return rows.vm({ outKey: Key.score, expr: base * WEIGHT }).filter({ pred: keep });
}
