/** Observes a running service: probes at a steady pace, waits with a limit, metrics by name. */
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../runs.js'
import type { Caller } from '../agents/journey.js'

/** Ends a test whose condition never holds. It says nothing of speed: a busy machine takes long. */
const LIMIT_MS = IS_LONG ? 300_000 : 120_000

/** Waits for a condition. @throws with the name of the condition when it never holds. */
export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const began = performance.now()
  while (!(await holds())) {
    if (performance.now() - began > LIMIT_MS) throw new Error(`${what}: not within ${LIMIT_MS} ms`)
    await sleep(20)
  }
}

export const isReady = async ({ call }: Caller) => (await call('/health/ready')).status === 200

export interface Pulse {
  /** Ends the probes: their number, those without status 200, and the slowest. */
  stop(): Promise<{ probes: number; bad: number }>
}

/** Requests /health/live continuously. */
export function watchLive({ call }: Caller, paceMs = 25): Pulse {
  const over = new AbortController()
  const seen = { probes: 0, bad: 0 }
  const watch = async () => {
    while (!over.signal.aborted) {
      const status = await call('/health/live').then(
        (answer) => answer.status,
        () => 0,
      )
      seen.probes += 1
      if (status !== 200) seen.bad += 1
      await sleep(paceMs)
    }
  }
  const watched = watch()
  return {
    async stop() {
      over.abort()
      await watched
      return seen
    },
  }
}

export const METRICS_TOKEN = 'metrics-of-a-test-service'

/** The sum of a metric over the samples with all of these labels. */
export async function metric(
  { call }: Caller,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { text } = await call('/metrics', { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  let sum = 0
  for (const line of text.split('\n')) {
    const [, found, inside = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (found !== name) continue
    const fits = Object.entries(labels).every(([label, want]) =>
      inside.includes(`${label}="${want}"`),
    )
    if (fits) sum += Number(value)
  }
  return sum
}
