/** Checks that the service's port is free before anything else is started or changed. */
import { createServer } from 'node:net'
import { type StartContext, StartRefused } from './start-context.js'

/**
 * Binds the address and releases it. The listener binds it later, and reports when another process
 * was faster.
 * @throws {StartRefused} naming the address.
 */
export async function requireFreePort({ loaded }: StartContext): Promise<void> {
  const { host, port } = loaded.settings.server
  if (port === 0) return
  await new Promise<void>((resolve, reject) => {
    const probe = createServer()
    probe.once('error', ({ message }) =>
      reject(new StartRefused(`cannot listen on ${host} port ${port}: ${reasonOf(message)}`)),
    )
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}

function reasonOf(message: string): string {
  return message.includes('EADDRINUSE') ? 'it is taken by another program' : message
}
