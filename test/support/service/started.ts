/** Counts what tests start, for the end of a run. */
import { appendFileSync } from 'node:fs'

export const STARTED_KINDS = ['service', 'database', 'browser'] as const
export type StartedKind = (typeof STARTED_KINDS)[number]

/** Call it in the one place that starts a thing of this kind. */
export function countStart(kind: StartedKind): void {
  const path = process.env['TEST_STARTED']
  if (path !== undefined) appendFileSync(path, `${kind}\n`)
}
