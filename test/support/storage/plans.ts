/** Query plans of `explain (format json)`. */

export type Plan = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  /** These three with `analyze` only. */
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}

/** The one row of an explained statement. */
export type Explained = { readonly 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }

/** All nodes of an explained statement. */
export function nodesOf({ 'QUERY PLAN': [{ Plan }] }: Explained): Plan[] {
  const below = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(below)]
  return below(Plan)
}
