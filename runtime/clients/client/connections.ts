/** Connections to a service, over HTTP/2 where it is supported. */
import { Agent, type Client, type Dispatcher, interceptors } from 'undici'
import { fixHttp2, NotProcessed } from '../../../actors/platform/undici/http2-fixes.js'

/** A request that is refused this often fails. */
const REPEATS_MAX = 5
const PAUSE_MS = 20

/**
 * Responses are completed even when the service closes the connection, as it does when it stops. Requests that the
 * service or its proxy refused without processing them are sent again (RFC 9113, section 8.7).
 */
export function serviceAgent(options: Omit<Agent.Options, 'allowH2'>): Dispatcher {
  const agent = new Agent({ ...options, allowH2: true })
  agent.on('connect', (_, [, pool, client]) => fixHttp2(pool!, client as Client))
  return agent.compose(
    interceptors.retry({
      // Every response is an answer, whatever its status.
      statusCodes: [],
      retry(error, { state: { counter } }, callback) {
        if (!(error instanceof NotProcessed) || counter > REPEATS_MAX) return callback(error)
        setTimeout(callback, PAUSE_MS * counter, null)
      },
    }),
  )
}
