/** [event_sinks]: events for a message broker of the operator (docs/guides/operations/event-sinks.md). */
import { z } from 'zod'
import {
  flag,
  list,
  notes,
  readFilePath,
  secret,
  text,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const SUBJECT_PREFIX = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/
const STREAM = /^[A-Za-z0-9_-]{1,255}$/
/** A host name or IPv4 address with a port. The client of Kafka takes no IPv6 address. */
const NAMED_SERVER = /^[A-Za-z0-9.-]+:\d{1,5}$/
/** Names that every broker accepts (KIP-196). */
const TOPIC = /^[A-Za-z0-9._-]{1,249}$/
/** A host with a port, without a scheme: `tls` says how to connect. */
const SERVER = /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/

export const eventSinksSettings = section(
  'event_sinks',
  {
    nats: z
      .object({
        servers: list(z.string().regex(SERVER))
          .register(notes, { words: 'a list of host:port' })
          .default([])
          .describe('NATS servers as host:port. Events are sent when there is one.'),
        stream: z
          .string()
          .regex(STREAM)
          .register(notes, { words: 'the name of a stream' })
          .default('SVC_EVENTS')
          .describe('The JetStream stream. It must exist.'),
        subject_prefix: z
          .string()
          .regex(SUBJECT_PREFIX)
          .register(notes, { words: 'tokens of a subject, joined by dots' })
          .default('svc.events')
          .describe('An event has the subject {subject_prefix}.{tenant_id}.{type}.'),
        tls: flag(true).describe('Require TLS. Mandatory in production.'),
        ca_pem_path: readFilePath('ca.pem')
          .optional()
          .describe('Additional trusted CA certificates, for private servers.'),
        username: text('svc').optional().describe('Account, with the password below.'),
        password: secret().optional().describe('Its password.'),
        token: secret()
          .optional()
          .describe(
            'A token, for servers that authenticate with one. It is used in place of username and password.',
          ),
        credentials_path: readFilePath('svc.creds')
          .optional()
          .describe(
            'A credentials file with a JWT and its NKEY seed, as `nsc` writes it. It is used in place of the others.',
          ),
      })
      .describe('NATS JetStream.'),
    kafka: z
      .object({
        bootstrap_servers: list(z.string().regex(NAMED_SERVER))
          .register(notes, { words: 'a list of host:port' })
          .default([])
          .describe('Kafka brokers as host:port. Events are sent when there is one.'),
        topic: z
          .string()
          .regex(TOPIC)
          .register(notes, { words: 'the name of a topic' })
          .default('svc.events')
          .describe('The topic. It must exist.'),
        client_id: z
          .string()
          .regex(TOPIC)
          .register(notes, { words: 'letters, digits, dots, dashes and underscores' })
          .default('svc')
          .describe('The name of the service in the logs and quotas of the broker.'),
        tls: flag(true).describe('Require TLS. Mandatory in production.'),
        ca_pem_path: readFilePath('ca.pem')
          .optional()
          .describe('Trusted CA certificates, for private brokers. They replace the public ones.'),
        username: text('svc').optional().describe('Account, with the password below.'),
        password: secret().optional().describe('Its password.'),
        sasl_mechanism: z
          .enum(['plain', 'scram-sha-256', 'scram-sha-512'])
          .default('scram-sha-512')
          .describe('How the account authenticates.'),
      })
      .describe(
        'Deprecated, use event_sinks.nats: the next major version removes it. A broker of the Kafka protocol.',
      ),
  },
  {
    about: 'Events for a message broker.',
    rules: [
      {
        keys: ['nats.username', 'nats.password'],
        holds: ({ nats }) => (nats.username === undefined) === (nats.password === undefined),
        rule: 'be set together with event_sinks.nats.password',
        fix: 'set both or neither',
      },
      {
        keys: ['kafka.username', 'kafka.password'],
        holds: ({ kafka }) => (kafka.username === undefined) === (kafka.password === undefined),
        rule: 'be set together with event_sinks.kafka.password',
        fix: 'set both or neither',
      },
    ],
  },
)

export type EventSinksSettings = SettingsOf<typeof eventSinksSettings>
export type NatsSettings = EventSinksSettings['nats']

export type KafkaSettings = EventSinksSettings['kafka']

/** True if events are sent to NATS. */
export function hasNats({ nats }: EventSinksSettings): boolean {
  return nats.servers.length > 0
}

/** True if events are sent to a broker of the Kafka protocol. */
export function hasKafka({ kafka }: EventSinksSettings): boolean {
  return kafka.bootstrap_servers.length > 0
}

/** True if events are sent to any broker. */
export function hasSinks(settings: EventSinksSettings): boolean {
  return hasNats(settings) || hasKafka(settings)
}
