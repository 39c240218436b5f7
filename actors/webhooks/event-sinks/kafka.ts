/** Sends events to a broker of the Kafka protocol. Only a deployment with this sink loads the client. */
import { readFileSync } from 'node:fs'
import type { Admin, KafkaConfig, Producer } from 'kafkajs'
import type { KafkaSettings } from './settings.js'
import type { EventSink, SentEvent, SinkConnection } from './sink.js'

const CONNECT_TIMEOUT_MS = 5_000
/** A broker that does not confirm events within this time gets them again. */
const ACK_TIMEOUT_MS = 5_000
/** Wait before the next bootstrap server. */
const RETRY_MS = 100
/** Events in one request at most. */
const EVENTS_MAX = 100
/** Bytes of the events in one request, well below the limit of a broker (`message.max.bytes`, 1 MiB by default). */
const BYTES_MAX = 512 * 1024
/** All replicas that are in sync have the events before the broker confirms them (`acks = all`). */
const ALL_REPLICAS = -1

/** The sink `kafka` of these settings. The operator names its servers, as for the database. */
export function kafkaSink(settings: KafkaSettings): EventSink {
  return {
    name: 'kafka',
    async connect() {
      const producer = await producerOf(settings)
      let isOpen = true
      producer.on('producer.disconnect', () => {
        isOpen = false
      })
      await producer.connect()
      return {
        batchMax: EVENTS_MAX,
        async send(events) {
          for (const messages of requestsOf(events)) {
            await producer.send({
              topic: settings.topic,
              acks: ALL_REPLICAS,
              timeout: ACK_TIMEOUT_MS,
              messages,
            })
          }
        },
        isOpen: () => isOpen,
        close: () => producer.disconnect(),
      } satisfies SinkConnection
    },
  }
}

type Message = {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** The key of a message is the tenant, so a tenant has one partition, in which its events keep their order. */
function messageOf({ id, tenantId, type, body }: SentEvent): Message {
  const headers = { event_id: id, type, 'content-type': 'application/json' }
  return { key: tenantId, value: body, headers }
}

/** The messages, divided into requests of at most `BYTES_MAX`. A larger event has a separate request. */
function requestsOf(events: readonly SentEvent[]): Message[][] {
  const requests: Message[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const event of events) {
    const size = Buffer.byteLength(event.body)
    bytes += size
    if (bytes > BYTES_MAX) {
      requests.push([])
      bytes = size
    }
    requests.at(-1)!.push(messageOf(event))
  }
  return requests
}

async function producerOf(settings: KafkaSettings): Promise<Producer> {
  const { Kafka, Partitioners } = await client()
  return new Kafka(await configOf(settings)).producer({
    allowAutoTopicCreation: false,
    // The partition of a key is the same as with the Java client.
    createPartitioner: Partitioners.DefaultPartitioner,
    retry: { retries: 0 },
  })
}

/** For `svc doctor`. Call `connect` before use. */
export async function kafkaAdmin(settings: KafkaSettings): Promise<Admin> {
  const { Kafka } = await client()
  return new Kafka(await configOf(settings)).admin()
}

/** One attempt for each bootstrap server, and one for everything else: the caller connects again after a failure. */
async function configOf(settings: KafkaSettings): Promise<KafkaConfig> {
  const { logLevel } = await client()
  const { bootstrap_servers: brokers, client_id: clientId, tls, ca_pem_path: caPath } = settings
  const { username, password = '', sasl_mechanism: mechanism } = settings
  return {
    brokers: [...brokers],
    clientId,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    authenticationTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: ACK_TIMEOUT_MS,
    enforceRequestTimeout: true,
    // An attempt after a failed one takes the next server.
    retry: { retries: brokers.length - 1, initialRetryTime: RETRY_MS, maxRetryTime: RETRY_MS },
    // Failures are thrown, and the caller logs them.
    logLevel: logLevel.NOTHING,
    ssl: tls ? (caPath === undefined ? true : { ca: [readFileSync(caPath, 'utf8')] }) : false,
    ...(username === undefined ? {} : { sasl: { mechanism, username, password } as never }),
  }
}

async function client(): Promise<typeof import('kafkajs')> {
  return (await import('kafkajs')).default as never
}
