/** Sends events to NATS JetStream. Only a deployment with this sink loads the client. */
import { readFileSync } from 'node:fs'
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node'
import type { EventSink, SinkConnection } from './sink.js'
import type { NatsSettings } from './settings.js'

const CONNECT_TIMEOUT_MS = 5_000
/** A server that does not confirm an event within this time gets it again. */
const ACK_TIMEOUT_MS = 5_000
/** The server is asked for a sign of life at this interval. After two without an answer the connection ends. */
const PING_INTERVAL_MS = 10_000
const PINGS_MAX = 2

/** The sink `nats` of these settings. The operator names its servers, as for the database. */
export function natsSink(settings: NatsSettings): EventSink {
  return {
    name: 'nats',
    async connect() {
      const { jetstream } = await import('@nats-io/jetstream')
      const connection = await connectToNats(settings)
      const client = jetstream(connection, { timeout: ACK_TIMEOUT_MS })
      const { headers } = await import('@nats-io/transport-node')
      const { stream, subject_prefix: prefix } = settings
      return {
        // Each event waits for the confirmation of the one before it: a stream may store what follows a refused message.
        batchMax: 1,
        async send(events) {
          for (const { id, tenantId, type, body } of events) {
            const fields = headers()
            fields.set('event_id', id)
            fields.set('content-type', 'application/json')
            // A message with the id of an earlier one, or for another stream, is not stored. Events of organizations have one id
            // in several tenants.
            await client.publish(`${prefix}.${tenantId}.${type}`, body, {
              msgID: `${tenantId}.${id}`,
              headers: fields,
              expect: { streamName: stream },
              timeout: ACK_TIMEOUT_MS,
              retries: 1,
            })
          }
        },
        isOpen: () => !connection.isClosed(),
        close: () => connection.close(),
      } satisfies SinkConnection
    },
  }
}

/** Connects once: after a lost connection the caller connects again. @throws when no server accepts it. */
export async function connectToNats(settings: NatsSettings): Promise<NatsConnection> {
  const { connect } = await import('@nats-io/transport-node')
  const { servers, tls, ca_pem_path: caPath } = settings
  return connect({
    servers: [...servers],
    name: 'svc',
    reconnect: false,
    maxReconnectAttempts: 0,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: PINGS_MAX,
    ignoreClusterUpdates: true,
    ...(tls ? { tls: caPath === undefined ? {} : { ca: readFileSync(caPath, 'utf8') } } : {}),
    ...(await loginOf(settings)),
  })
}

/** The one way to authenticate that is used. */
async function loginOf(settings: NatsSettings): Promise<ConnectionOptions> {
  const { credentials_path: credentials, token, username, password } = settings
  if (credentials !== undefined) {
    const { credsAuthenticator } = await import('@nats-io/transport-node')
    return { authenticator: credsAuthenticator(readFileSync(credentials)) }
  }
  if (token !== undefined) return { token }
  return username === undefined ? {} : { user: username, pass: password ?? '' }
}
