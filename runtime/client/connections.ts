/** Connections to a service, over HTTP/2 where it is supported. */
import { Agent, type Client } from 'undici'
import { fixHttp2 } from '../../actors/platform/outbound-http/undici-http2-fixes.js'

/**
 * Responses are completed even when the service closes the connection, as it does when it stops.
 */
export function serviceAgent(options: Omit<Agent.Options, 'allowH2'>): Agent {
  const agent = new Agent({ ...options, allowH2: true })
  agent.on('connect', (_, [, pool, client]) => fixHttp2(pool!, client as Client))
  return agent
}
