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

/** A node of a plan, and whether a limit above it ends its scan early. */
export type PlanNode = Plan & { readonly isLimited: boolean }

/** Nodes that return a row as soon as they have read it. */
const STREAMS: ReadonlySet<string> = new Set([
  'Limit',
  'LockRows',
  'Nested Loop',
  'Result',
  'Subquery Scan',
])

/** All nodes of an explained statement. */
export function nodesOf({ 'QUERY PLAN': [{ Plan }] }: Explained): PlanNode[] {
  const below = (plan: Plan, isLimited: boolean): PlanNode[] => {
    const type = plan['Node Type']
    const limits = type === 'Limit' || (isLimited && STREAMS.has(type))
    return [{ ...plan, isLimited }, ...(plan.Plans ?? []).flatMap((each) => below(each, limits))]
  }
  return below(Plan, false)
}
