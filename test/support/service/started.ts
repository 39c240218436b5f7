/** Counts what tests start, and for whom, for the end of a run. */
import { appendFileSync } from 'node:fs'

export const STARTED_KINDS = ['service', 'database', 'browser'] as const
export type StartedKind = (typeof STARTED_KINDS)[number]

/**
 * Call it in the one place that starts a thing of this kind.
 *
 * @param by a profile of services that files share, or a test file. Default: the test file of this process.
 */
export function countStart(kind: StartedKind, by = process.env['TEST_FILE'] ?? 'the runner'): void {
  const path = process.env['TEST_STARTED']
  if (path !== undefined) appendFileSync(path, `${kind} ${by}\n`)
}
