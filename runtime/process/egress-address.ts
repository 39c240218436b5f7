/** The egress address of a process: the listener of its egress thread. */
import { createServer } from 'node:net'
import { isLoopback } from '../../gateway/transports/parser.js'
import { isLocal } from './configuration/assembly.js'
import { loadSettings, type LoadSettingsInput } from './configuration/load-settings.js'
import type { LoadedSettings } from './configuration/load-settings.js'
import type { Environment } from '../kernel/config/environment.js'
import type { Logger } from '../kernel/log.js'
import { planesOf } from './planes.js'
import type { StartContext, Undo } from './start-context.js'

/** The name of the thread in `planes.ts`. */
export const EGRESS_THREAD = 'egress'

/** `server.egress_port`, in a process that serves the proxy. */
export function egressPortOf({ settings, plane }: Pick<LoadedSettings, 'settings' | 'plane'>) {
  return planesOf(plane).includes('auth') ? settings.server.egress_port : undefined
}

/** Opens the listener of the egress thread. The thread opens it again after a restart. */
export async function openEgressAddress(context: StartContext): Promise<Undo | void> {
  const { loaded, system, gateway, log } = context
  const port = egressPortOf(loaded)
  if (port === undefined) return
  await context.openEgressAddress!(port)
  const { egress_url: url } = loaded.settings.server
  log.info({ url, port }, 'the egress proxy has a separate address')
  return async (withinMs) => {
    // Both have the whole time.
    const ends = await Promise.all([gateway!.drain(withinMs), system!.finishRequests(withinMs)])
    return ends.every(Boolean)
  }
}

/**
 * For `npm start`: a local run has the egress address at the next port. Where that is taken, the main listener serves the
 * proxy alone.
 */
export async function withEgressBeside(
  input: LoadSettingsInput,
  log: Logger,
): Promise<Environment> {
  const { environment } = input
  const loaded = loadSettings(input)
  if (loaded.tag === 'refused' || loaded.plane !== 'all') return environment
  const { server, oidc, security } = loaded.settings
  const issuer = new URL(oidc.issuer_url)
  const isOwn =
    !security.production &&
    isLoopback(server.host) &&
    isLocal(oidc.issuer_url) &&
    Number(issuer.port) === server.port
  const isNamed = loaded.sources.get('server.egress_url')?.kind !== 'fallback'
  const port = server.port + 1
  if (!isOwn || isNamed || server.egress_port !== undefined || port > 65_535) return environment
  const fault = await portFault(server.host, port)
  if (fault === undefined) return { ...environment, SVC_SERVER__EGRESS_PORT: String(port) }
  log.warn(
    { port, reason: fault },
    'the port of the egress address cannot be used: the main listener serves the egress proxy alone',
  )
  return environment
}

/** Binds a port and releases it. @returns why it cannot be bound. */
export function portFault(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', ({ message }) =>
      resolve(message.includes('EADDRINUSE') ? 'it is taken by another program' : message),
    )
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
