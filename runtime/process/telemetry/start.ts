/** Turns tracing on for a thread when [telemetry] is on. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import { INTERFACE_VERSION } from '../../../gateway/request/interface-version.js'
import { useTracing } from '../../kernel/tracing.js'
import type { TelemetrySettings } from './settings.js'

/**
 * The SDK is loaded only here, and only when it is needed.
 * @returns a function that sends the last spans and turns tracing off.
 */
export async function startTelemetry(
  settings: TelemetrySettings,
  source: { readonly plane: string; readonly thread: string },
  registry: Registry,
): Promise<() => Promise<void>> {
  if (!settings.enabled) return async () => undefined
  const { openTelemetry } = await import('./open-telemetry.js')
  const tracing = openTelemetry(settings, { ...source, version: INTERFACE_VERSION }, registry)
  useTracing(tracing)
  return async () => {
    useTracing(undefined)
    // A collector that is away must not delay the stop.
    await Promise.race([
      tracing.stop().catch(() => undefined),
      sleep(STOP_MS, undefined, { ref: false }),
    ])
  }
}

const STOP_MS = 2_000
